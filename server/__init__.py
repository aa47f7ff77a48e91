"""The coordinator: it never sees a private record, only noised answers."""
