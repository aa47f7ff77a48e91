"""BERT's tokenizer: WordPiece on words and punctuation marks (Devlin et al. 2019), in the form of `tokenizer.json`.

Some versions of transformers take the tokenizer from that file, while other versions build it from
`tokenizer_config.json`. If both files agree in every setting, all versions produce the same tokens, and so does this
module.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Form = Mapping[str, tuple[object, ...]]
"""Permitted values of each setting; if None is among them, the setting may be absent."""

_SPECIAL = {f"{name.lower()}_token": f"[{name}]" for name in ("PAD", "UNK", "CLS", "SEP", "MASK")}
_SETTINGS: Form = {
    "tokenizer_class": (None, "BertTokenizer", "BertTokenizerFast", "PreTrainedTokenizerFast", "TokenizersBackend"),
    "padding_side": (None, "right"),
    "truncation_side": (None, "right"),
    "additional_special_tokens": (None, []),
    "extra_special_tokens": (None, [], {}),
    "auto_map": (None,),
}
_PIECES: Form = {
    "type": ("WordPiece",),
    "unk_token": ("[UNK]",),
    "continuing_subword_prefix": ("##",),
    "max_input_chars_per_word": (100,),
}
_PLAIN: Form = {
    "special": (None, True),
    **dict.fromkeys(("lstrip", "rstrip", "single_word", "normalized"), (None, False)),
}


def tokenizer_of(folder: Path, longest: int) -> "Tokenizer":
    """Load the tokenizer of a folder that `vocabulary_of` accepts, truncating to `longest` tokens without padding."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(longest)
    return tokenizer


def vocabulary_of(folder: Path, settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the data that determine the tokens of a text: the index of each word piece, and the normaliser's settings.

    Args:
        folder: Folder of the model.
        settings: The content of its `tokenizer_config.json`.

    Returns:
        The data; None if the tokenizer is not BERT's, or the files disagree.
    """
    read, named = read_json(folder / "tokenizer.json"), read_json(folder / "special_tokens_map.json")
    if not read or not has_form(settings, _SETTINGS) or not has_form(read["model"], _PIECES):
        return None
    pieces = read["model"]["vocab"]
    special = {pieces.get(piece): piece for piece in _SPECIAL.values()}
    added = {token["id"]: token for token in read["added_tokens"]}
    added_again = {int(number): token for number, token in settings.get("added_tokens_decoder", added).items()}
    normalizer = {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": settings.get("tokenize_chinese_chars", True),
        "strip_accents": settings.get("strip_accents"),
        "lowercase": settings.get("do_lower_case", True),
    }
    framed = read["post_processor"] or {}
    frame = [("SpecialToken", "[CLS]"), ("Sequence", "A"), ("SpecialToken", "[SEP]")]
    fits = (
        read["normalizer"] == normalizer
        and read["pre_tokenizer"] == {"type": "BertPreTokenizer"}
        and all(
            {number: token["content"] for number, token in tokens.items()} == special
            and all(has_form(token, _PLAIN) for token in tokens.values())
            for tokens in (added, added_again)
        )
        and all(
            _content(names.get(name, piece)) == piece for names in (settings, named) for name, piece in _SPECIAL.items()
        )
        and framed.get("type") == "TemplateProcessing"
        and framed["single"] == [{kind: {"id": name, "type_id": 0}} for kind, name in frame]
        and all(framed["special_tokens"][piece]["ids"] == [pieces[piece]] for piece in ("[CLS]", "[SEP]"))
    )
    return {"pieces": pieces, "normalizer": normalizer} if fits else None


def read_json(path: Path) -> Any:
    """Read a JSON file; return an empty object if it does not exist."""
    return json.loads(path.read_text("utf-8")) if path.is_file() else {}


def has_form(settings: Mapping[str, object], form: Form) -> bool:
    """Return whether every setting of a form has one of the permitted values."""
    return all(settings.get(name) in values for name, values in form.items())


def _content(token: Any) -> Any:
    return token["content"] if isinstance(token, dict) else token
