"""Reads, checks and identifies the folders of encoders that `common/models/bert.py` can compute.

These encoders have the form of most small sentence encoders: a BERT with absolute positions, exact GELU, float32
weights and a WordPiece tokenizer (Devlin et al. 2019), then the mean over a text's tokens, then perhaps normalisation.
Each setting that transformers or sentence-transformers would read is compared with this form, and a folder that differs
in any setting is left to these libraries. Some versions of transformers take the tokenizer from `tokenizer.json`, and
others build it from `tokenizer_config.json`: both files must agree, so that all versions produce the same tokens.

The digest of an encoder of this form covers its weights, its vocabulary and the settings that matter, whichever library
computes with it. It does not depend on paths, metadata, versions or whatever a library adds to a copy.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from common.models.checkpoints import readable

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Form = Mapping[str, tuple[object, ...]]
"""Permitted values of each setting; if None is among them, the setting may be absent."""

WORDS, POSITIONS, TYPES = (f"embeddings.{kind}_embeddings.weight" for kind in ("word", "position", "token_type"))

_WEIGHTS, _PROMPTS = "model.safetensors", "config_sentence_transformers.json"
_MODULES = ["Transformer", "Pooling", "Normalize"]
"""Class names of the modules, in their order; the last may be missing."""

_NETWORK: Form = {
    "model_type": ("bert",),
    "hidden_act": ("gelu",),
    "position_embedding_type": (None, "absolute"),
    "is_decoder": (None, False),
    "add_cross_attention": (None, False),
    "dtype": (None, "float32"),
    "torch_dtype": (None, "float32"),
    "pruned_heads": (None, {}),
    "quantization_config": (None,),
    "auto_map": (None,),
}
_NUMBERS = {
    *("num_hidden_layers", "num_attention_heads", "hidden_size", "intermediate_size", "layer_norm_eps"),
    *("vocab_size", "max_position_embeddings", "type_vocab_size"),
}
_READER: Form = {
    "do_lower_case": (None, False),
    "transformer_task": (None, "feature-extraction"),
    "modality_config": (None, {"text": {"method": "forward", "method_output_name": "last_hidden_state"}}),
    "module_output_name": (None, "token_embeddings"),
}
_POOLING: Form = {
    "pooling_mode": (None, "mean"),
    "pooling_mode_mean_tokens": (None, True),
    "pooling_mode_cls_token": (None, False),
    "pooling_mode_max_tokens": (None, False),
    "pooling_mode_mean_sqrt_len_tokens": (None, False),
    "pooling_mode_weightedmean_tokens": (None, False),
    "pooling_mode_lasttoken": (None, False),
    "include_prompt": (None, True),
}
_NORMALIZE: Form = dict.fromkeys(("module_input_name", "module_output_name"), (None, "sentence_embedding"))
_PROMPTED: Form = {"model_type": (None, "SentenceTransformer"), "truncate_dim": (None,)}
_SPECIAL = {f"{name.lower()}_token": f"[{name}]" for name in ("PAD", "UNK", "CLS", "SEP", "MASK")}
_TOKENIZER: Form = {
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


@dataclass(frozen=True, slots=True, kw_only=True)
class BertFolder:
    """Description of an encoder that `bert.py` can compute, without the values of its weights.

    Attributes:
        folder: Folder of the files.
        layers: Number of layers.
        heads: Number of attention heads per layer.
        epsilon: Constant that layer normalisation adds to the variance.
        longest: Maximum number of tokens of a text; longer texts are truncated.
        normalised: Whether the model normalises its vectors itself.
        vocabulary: Data that determine the tokens of a text: the index of each word piece, and the normaliser's
            settings.
        shapes: Shape of each weight, keyed by its name.
    """

    folder: Path
    layers: int
    heads: int
    epsilon: float
    longest: int
    normalised: bool
    vocabulary: Mapping[str, Any]
    shapes: Mapping[str, tuple[int, ...]]

    @classmethod
    def of_sentence_encoder(cls, folder: Path) -> Self | None:
        """Return the description of a folder that sentence-transformers saved; None if it has another form.

        Raises:
            ConfigError: A file is damaged.
        """
        with readable("encoder", folder):
            modules, reader = _read_json(folder / "modules.json"), _read_json(folder / "sentence_bert_config.json")
            kinds = [_kind(module) for module in modules]
            if kinds not in (_MODULES, _MODULES[:2]) or modules[0]["path"]:
                return None
            pooling, *normalizing = (_read_json(folder / module["path"] / "config.json") for module in modules[1:])
            if (
                reader.keys() <= {"max_seq_length", *_READER}
                and _has_form(reader, _READER)
                and pooling
                and _has_form(pooling, _POOLING)
                and all(_has_form(module, _NORMALIZE) for module in normalizing)
                and _has_form(_read_json(folder / _PROMPTS), _PROMPTED)
            ):
                return cls._of(folder, longest=reader.get("max_seq_length"), normalised=bool(normalizing))
            return None

    @classmethod
    def of_checkpoint(cls, folder: Path, *, longest: int) -> Self | None:
        """Return the description of a bare network's folder, with mean pooling added; see `of_sentence_encoder`."""
        with readable("encoder", folder):
            return cls._of(folder, longest=longest, normalised=False)

    @classmethod
    def _of(cls, folder: Path, *, longest: int | None, normalised: bool) -> Self | None:
        config, settings = _read_json(folder / "config.json"), _read_json(folder / "tokenizer_config.json")
        if not _has_form(config, _NETWORK) or not config.keys() >= _NUMBERS:
            return None
        if (vocabulary := _vocabulary(folder, settings)) is None:
            return None
        shapes, positions = _shapes(config), config["max_position_embeddings"]
        longest = longest or min(settings.get("model_max_length", positions), positions)
        fits = (
            2 < longest <= positions
            and config["hidden_size"] % config["num_attention_heads"] == 0
            and {*vocabulary["pieces"].values()} <= {*range(config["vocab_size"])}
            and not any((folder / name).exists() for name in ("adapter_config.json", "added_tokens.json"))
            and _has(folder / _WEIGHTS, shapes)
        )
        if not fits:
            return None
        return cls(
            folder=folder,
            layers=config["num_hidden_layers"],
            heads=config["num_attention_heads"],
            epsilon=float(config["layer_norm_eps"]),
            longest=longest,
            normalised=normalised,
            vocabulary=vocabulary,
            shapes=shapes,
        )

    @property
    def width(self) -> int:
        """Dimension of the vectors that the network computes."""
        return self.shapes[WORDS][1]

    def tokenizer(self) -> "Tokenizer":
        """Load the tokenizer, which truncates texts to `longest` tokens and does not pad them."""
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(self.folder / "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.enable_truncation(self.longest)
        return tokenizer

    def weights(self) -> Iterator[tuple[str, NDArray[np.float32]]]:
        """Yield the name and values of each weight, one after another.

        Raises:
            ConfigError: The file is damaged.
        """
        from safetensors import safe_open

        with readable("encoder", self.folder), safe_open(self.folder / _WEIGHTS, framework="numpy") as file:
            for name in self.shapes:
                yield name, file.get_tensor(name)

    def digest(self, prompt: str, weights: Iterable[tuple[str, NDArray[np.float32]]]) -> str:
        """Return the hex SHA-256 of the encoder.

        Args:
            prompt: Prefix of every text.
            weights: The result of `weights`, in the same order.
        """
        settings = {
            "form": "mean of BERT's tokens",
            "layers": self.layers,
            "heads": self.heads,
            "epsilon": self.epsilon,
            "longest": self.longest,
            "normalised": self.normalised,
            "vocabulary": self.vocabulary,
            "prompt": prompt,
        }
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
        for name, values in weights:
            digest.update(f"{name} {values.shape}".encode())
            digest.update(values.astype("<f4", order="C", copy=False).data)
        return digest.hexdigest()


def _kind(module: Mapping[str, Any]) -> str | None:
    """Return the name of a module's class; None if it is not a standard module of sentence-transformers."""
    package, *_, name = module["type"].split(".")
    return name if package == "sentence_transformers" and not module.get("kwargs") else None


def _shapes(config: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    width, inner = config["hidden_size"], config["intermediate_size"]
    dense = {
        "attention.output.dense": (width, width),
        "intermediate.dense": (inner, width),
        "output.dense": (width, inner),
    }
    dense |= {f"attention.self.{part}": (width, width) for part in ("query", "key", "value")}
    norms = ["embeddings.LayerNorm"]
    shapes: dict[str, tuple[int, ...]] = {
        WORDS: (config["vocab_size"], width),
        POSITIONS: (config["max_position_embeddings"], width),
        TYPES: (config["type_vocab_size"], width),
    }
    for layer in (f"encoder.layer.{number}" for number in range(config["num_hidden_layers"])):
        norms += [f"{layer}.attention.output.LayerNorm", f"{layer}.output.LayerNorm"]
        for name, shape in dense.items():
            shapes |= {f"{layer}.{name}.weight": shape, f"{layer}.{name}.bias": shape[:1]}
    for name in norms:
        shapes |= {f"{name}.weight": (width,), f"{name}.bias": (width,)}
    return shapes


def _has(file: Path, shapes: Mapping[str, tuple[int, ...]]) -> bool:
    """Return whether a file contains weights with these names and shapes in single precision."""
    from safetensors import safe_open

    if not file.is_file():
        return False
    with safe_open(file, framework="numpy") as opened:
        if not shapes.keys() <= {*opened.keys()}:
            return False
        parts = {name: opened.get_slice(name) for name in shapes}
        return all(
            parts[name].get_dtype() == "F32" and tuple(parts[name].get_shape()) == shape
            for name, shape in shapes.items()
        )


def _vocabulary(folder: Path, settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the index of each word piece and the normaliser's settings; None for another tokenizer than BERT's.

    `settings` is the content of `tokenizer_config.json`.
    """
    read, named = _read_json(folder / "tokenizer.json"), _read_json(folder / "special_tokens_map.json")
    if not read or not _has_form(settings, _TOKENIZER) or not _has_form(read["model"], _PIECES):
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
            and all(_has_form(token, _PLAIN) for token in tokens.values())
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


def _read_json(path: Path) -> Any:
    """Read a JSON file; return an empty object if it does not exist."""
    return json.loads(path.read_text("utf-8")) if path.is_file() else {}


def _has_form(settings: Mapping[str, object], form: Form) -> bool:
    """Return whether every setting of a form has one of the permitted values."""
    return all(settings.get(name) in values for name, values in form.items())


def _content(token: Any) -> Any:
    return token["content"] if isinstance(token, dict) else token
