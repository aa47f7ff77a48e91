"""A GGUF file with a hundred thousand random weights, which every engine can read like a real model's file."""

import gguf
import numpy as np

TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
WORDS = (
    "the a of and to with in was is for on at no not my you i it he she they fever cough pain chest head night days "
    "patient doctor note seen came given card bank money account transfer refund late lost please help today since"
)
_LAYERS, _WIDTH, _HEADS, _KEY_HEADS, _INNER = 2, 64, 2, 1, 128
_CONTEXT, _ROPE_BASE, _EPSILON = 1024, 10000.0, 1e-5


def tiny_gguf(folder, *, context=_CONTEXT, template=TEMPLATE):
    """Write a model of the Llama architecture; return the file's path.

    As in the file of SmolLM2-135M-Instruct, the weights are quantized, the head is tied to the embeddings, and the
    tokenizer is a byte-level BPE with a chat template. The model writes mainly words and line ends, in an order
    determined by the preceding text. All weights have 8 bits, since every engine reads these as the same numbers; some
    engines round 4-bit weights once more.

    Args:
        folder: Folder of the file, which is created.
        context: Context length in tokens.
        template: Chat template; None for a model without.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pieces, merges = _vocabulary()
    file = folder / "tiny.gguf"
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_name("tiny")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    writer.add_block_count(_LAYERS)
    writer.add_context_length(context)
    writer.add_embedding_length(_WIDTH)
    writer.add_feed_forward_length(_INNER)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_KEY_HEADS)
    writer.add_rope_dimension_count(_WIDTH // _HEADS)
    writer.add_rope_freq_base(_ROPE_BASE)
    writer.add_layer_norm_rms_eps(_EPSILON)
    writer.add_vocab_size(len(pieces))
    _add_tokenizer(writer, pieces, merges, template)
    _add_weights(writer, pieces, np.random.default_rng(0))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def _vocabulary():
    """Return the special tokens, the bytes, and the merges that build each word with the space before it."""
    from tokenizers import pre_tokenizers

    pieces = [*SPECIAL, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    merges = []
    for word in WORDS.split():
        built = "Ġ"
        for letter in word:
            if f"{built} {letter}" not in merges:
                merges.append(f"{built} {letter}")
                pieces.append(built + letter)
            built += letter
    return pieces, merges


def _add_tokenizer(writer, pieces, merges, template):
    start, end = SPECIAL.index("<|im_start|>"), SPECIAL.index("<|im_end|>")
    kinds = [gguf.TokenType.CONTROL if piece in SPECIAL else gguf.TokenType.NORMAL for piece in pieces]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(pieces)
    writer.add_token_types(kinds)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(start)
    writer.add_eos_token_id(end)
    writer.add_unk_token_id(0)
    writer.add_pad_token_id(end)
    writer.add_add_bos_token(False)
    writer.add_add_space_prefix(False)
    if template is not None:
        writer.add_chat_template(template)


def _add_weights(writer, pieces, random):
    def matrix(rows, columns):
        return random.normal(0, 3 / np.sqrt(columns), (rows, columns))

    # The head is tied to the embeddings: the larger they are, the likelier is a token.
    likely = {*(f"Ġ{word}" for word in WORDS.split()), "Ċ"}
    sizes = np.where([piece in likely for piece in pieces], 0.4, 0.1)
    sizes[[pieces.index("Ċ"), pieces.index(".")]] = 0.5
    tensors = {"token_embd": random.normal(0, sizes[:, None], (len(pieces), _WIDTH))}
    keys = _WIDTH // _HEADS * _KEY_HEADS
    for layer in range(_LAYERS):
        block = f"blk.{layer}"
        tensors |= {
            f"{block}.attn_q": matrix(_WIDTH, _WIDTH),
            f"{block}.attn_k": matrix(keys, _WIDTH),
            f"{block}.attn_v": matrix(keys, _WIDTH),
            f"{block}.attn_output": matrix(_WIDTH, _WIDTH),
            f"{block}.ffn_gate": matrix(_INNER, _WIDTH),
            f"{block}.ffn_up": matrix(_INNER, _WIDTH),
            f"{block}.ffn_down": matrix(_WIDTH, _INNER),
        }
    for name, weights in tensors.items():
        quantized = gguf.quants.quantize(weights.astype(np.float32), gguf.GGMLQuantizationType.Q8_0)
        writer.add_tensor(f"{name}.weight", quantized, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    norms = [f"blk.{layer}.{norm}" for layer in range(_LAYERS) for norm in ("attn_norm", "ffn_norm")]
    for name in [*norms, "output_norm"]:
        writer.add_tensor(f"{name}.weight", np.ones(_WIDTH, dtype=np.float32))
