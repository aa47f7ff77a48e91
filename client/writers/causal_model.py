"""The causal language model that a party fine-tunes: a checkpoint of its choice, or a small untrained model.

The party's own file names the checkpoint. A model and its tokenizer are public, or at least were not made from the
records; what they learnt before is outside every guarantee. The small model is created when it is needed, with random
weights and one token per byte, so that nothing in it comes from a text.

A record is tokenised as follows: the start token, if the tokenizer has one; its label and a line feed, if the plan has
labels; its text; and the end token.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from common.domain import is_one_population
from common.errors import ConfigError
from common.models import checkpoints
from common.models.devices import device_here
from common.rng import secure_bytes
from common.system.extras import needs

_END = "<|end|>"
_WIDTH = 64
_LAYERS = 2
_HEADS = 4
_PUBLIC_SEED = 0
"""Seed for the weights that are initialised here, public so that everybody can make the same ones."""
_FEWEST_TOKENS = 8
"""Minimum number of tokens of a text, after the label."""
_AT_ONCE = 64
"""Number of texts that are generated together."""
_TRIES = 3
"""Number of attempts at a text that is not blank."""


class TokenisedRecord(NamedTuple):
    """A tokenised record, ready for training.

    Attributes:
        ids: Token ids of the record.
        prefix: Number of leading tokens for the start token and the label, which are public and not learnt.
    """

    ids: tuple[int, ...]
    prefix: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Causal:
    """A model with its tokenizer.

    Attributes:
        model: A causal language model from transformers, on its device, without dropout.
        tokenizer: The model's tokenizer.
        prefixes: Tokens of each label of the plan.
        max_tokens: Maximum number of tokens that are used from a record, and of a text with its label.
    """

    model: Any = field(repr=False)
    tokenizer: Any = field(repr=False)
    prefixes: tuple[tuple[int, ...], ...]
    max_tokens: int

    def read(self, label: int, text: str) -> TokenisedRecord:
        """Return the tokens of one record, without the tokens beyond `max_tokens`."""
        prefix = self.prefixes[label]
        # Half a surrogate pair, which JSON can hold, is no text to a tokenizer, and a sign that it reads would end one.
        plain = text.encode("utf-8", "replace").decode()
        ids = self.tokenizer(plain, add_special_tokens=False, split_special_tokens=True)["input_ids"]
        return TokenisedRecord((*prefix, *ids, self.tokenizer.eos_token_id)[: self.max_tokens], len(prefix))

    def write(self, label: int, count: int, *, temperature: float, top_p: float) -> list[str]:
        """Return texts drawn from the model for one label; fewer than `count` if it repeatedly writes blank texts."""
        import torch
        from transformers import GenerationConfig

        prefix, end = self.prefixes[label], self.tokenizer.eos_token_id
        how = GenerationConfig(  # type: ignore[no-untyped-call]
            do_sample=True,
            temperature=temperature,
            top_p=top_p,
            top_k=0,
            max_length=self.max_tokens,
            min_new_tokens=1,
            eos_token_id=end,
            pad_token_id=end,
        )
        written: list[str] = []
        self.model.eval()
        with own_randomness(self.model.device), torch.no_grad():
            for _ in range(_TRIES * -(-count // _AT_ONCE)):
                missing = min(count - len(written), _AT_ONCE)
                if not missing:
                    break
                rows = torch.tensor([prefix] * missing, device=self.model.device)
                outputs = self.model.generate(rows, attention_mask=torch.ones_like(rows), generation_config=how)
                texts = self.tokenizer.batch_decode(outputs[:, len(prefix) :], skip_special_tokens=True)
                written += [text.strip() for text in texts if text.strip()]
        return written


def load_causal_model(
    name_or_path: str | None, labels: Sequence[str], *, max_tokens: int, device: str = "cpu"
) -> Causal:
    """Load a checkpoint, or create the small model.

    Args:
        name_or_path: A transformers folder, or a name in the local cache; None creates the small model.
        labels: The plan's labels.
        max_tokens: Maximum number of tokens that are used from a record, and of a text.
        device: Device to compute on, as torch names it.

    Raises:
        ConfigError: There is no such model, its tokenizer has no end token, or texts with labels are too long for the
            model.
    """
    check_installed()
    # First as a whole: while one thread imports it, another finds none of its parts. Simulated hospitals are threads.
    import transformers  # noqa: F401

    model, tokenizer = (
        _from_nothing(max_tokens, device) if name_or_path is None else load_saved_model(name_or_path, device)
    )
    if tokenizer.eos_token_id is None:
        raise ConfigError("the model to fine-tune has no end-of-text token", do="Fine-tune another model")
    context = getattr(model.config, "max_position_embeddings", None)
    if context is not None and max_tokens > context:
        expected, do = f"at most {context}, its model's context", "Plan for shorter texts, or fine-tune another model."
        raise ConfigError("max_tokens", expected=expected, got=max_tokens, do=do)
    start = [] if tokenizer.bos_token_id is None else [tokenizer.bos_token_id]
    named = ("",) if is_one_population(labels) else labels
    prefixes = tuple((*start, *tokenizer(f"{label}\n", add_special_tokens=False)["input_ids"]) for label in named)
    longest = max(map(len, prefixes))
    if longest + _FEWEST_TOKENS > max_tokens:
        raise ConfigError("max_tokens", expected=f"at least {longest + _FEWEST_TOKENS}, for labels", got=max_tokens)
    return Causal(model=model, tokenizer=tokenizer, prefixes=prefixes, max_tokens=max_tokens)


def check_installed() -> None:
    """Raise a ConfigError that names the package if one of the `transformers` extra is not installed."""
    needs("fine_tuning", "torch", "transformers", "peft", "opacus", extra="transformers")


def load_saved_model(name_or_path: str, device: str) -> tuple[Any, Any]:
    """Load a saved causal language model, in single precision and without dropout, and its tokenizer.

    Raises:
        ConfigError: There is no such model on this machine, or no such device.
    """

    def configure(config: Any) -> None:
        # A record's gradient is to depend on the record and the weights alone.
        config.update({key: 0.0 for key, value in config.to_dict().items() if "drop" in key and type(value) is float})
        config.use_cache = True

    what = "language model of this party's own file (name_or_path)"
    return checkpoints.load_checkpoint(
        name_or_path, "AutoModelForCausalLM", what=what, device=device, configure=configure
    )


@contextmanager
def own_randomness(device: Any) -> Iterator[None]:
    """Seed torch's generator from the operating system's entropy, and restore its state afterwards."""
    import torch

    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(int.from_bytes(secure_bytes(7)))
        yield


def _from_nothing(max_tokens: int, device: str) -> tuple[Any, Any]:
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    inner = Tokenizer(models.BPE(vocab={sign: number for number, sign in enumerate(alphabet)}, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    inner.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token=_END)  # type: ignore[no-untyped-call]
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=max_tokens,
        n_embd=_WIDTH,
        n_layer=_LAYERS,
        n_head=_HEADS,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(_PUBLIC_SEED)
        model: Any = GPT2LMHeadModel(config)
        return model.to(device_here(device)), tokenizer
