"""Checkpoints of transformers with a few thousand random weights, saved to disk like real checkpoints."""

import contextlib
import io
import itertools

WORDS = ("fever", "and", "cough")
NOTE_WORDS = ["fever", "chest", "pain", "cough", "anna", "came", "the", "of", "a", "was", "happy", "sad", ".", "note"]
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]


def tiny_bert(folder, words=WORDS, *, seed=0, width=16, layers=1, scale=0.02):
    """Write a BERT checkpoint with small random layers, by default one, and a tokenizer for these words.

    With weights of 0.02, as in BERT's own initialisation, attention hardly distinguishes tokens; with 0.3 it does.
    """
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder.mkdir(parents=True)
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    (folder / "vocab.txt").write_text("\n".join(pieces))
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(pieces),
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=2 * width,
        initializer_range=scale,
    )
    with contextlib.redirect_stderr(io.StringIO()):
        BertModel(config).save_pretrained(folder)
        BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    return folder


def tiny_transformer(folder, *, prompts=None, normalised=False, pooling="mean", longest=None, **size):
    """Return a real SentenceTransformer with one small random BERT layer."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

    saved = folder / "saved"
    transformer = Transformer(str(tiny_bert(folder / "bert", **size)), max_seq_length=longest)
    pooled = Pooling(transformer.get_embedding_dimension(), pooling)
    modules = [transformer, pooled, *([Normalize()] if normalised else [])]
    model = SentenceTransformer(modules=modules, prompts=prompts, device="cpu")
    model.save(str(saved), create_model_card=False)
    return saved


def tiny_llama(folder, *, chat=False, context=4096, seed=0, scale=0.3, tied=False):
    """Write a causal checkpoint with two random layers over bytes, whose output depends on attention."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=260,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        intermediate_size=64,
        max_position_embeddings=context,
        eos_token_id=2,
        bos_token_id=None,
        pad_token_id=None,
        initializer_range=scale,
        tie_word_embeddings=tied,
    )
    return _saved(LlamaForCausalLM(config), folder, chat=chat)


def tiny_gpt2(folder, *, chat=False, context=4096):
    """Write a causal checkpoint like `tiny_llama`, with learned absolute positions."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(1)
    config = GPT2Config(
        vocab_size=260,
        n_embd=32,
        n_layer=2,
        n_head=2,
        n_positions=context,
        eos_token_id=2,
        bos_token_id=2,
        initializer_range=0.3,
    )
    return _saved(GPT2LMHeadModel(config), folder, chat=chat)


def tiny_writer(folder, sentences, *, chat=False, context=4096):
    """Write a causal checkpoint that writes JSON lists, based only on which word follows which in these sentences.

    Its layers add nothing, so its answer depends only on the last token, and it needs no training.
    """
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM

    pairs = [("<user>", '["')]
    for sentence in sentences:
        words = ['["', *sentence.split(), '","', *sentence.split(), '"]', "</s>"]
        pairs += itertools.pairwise(words)
    pieces = ["<unk>", "</s>", "<user>", *sorted({word for pair in pairs for word in pair} - {"</s>", "<user>"})]
    number = {piece: at for at, piece in enumerate(pieces)}
    width = len(pieces) + len(pieces) % 2
    config = LlamaConfig(
        vocab_size=len(pieces),
        hidden_size=width,
        num_hidden_layers=1,
        num_attention_heads=1,
        intermediate_size=4,
        max_position_embeddings=context,
        eos_token_id=1,
        bos_token_id=None,
        pad_token_id=None,
        tie_word_embeddings=False,
    )
    model = LlamaForCausalLM(config)
    counts = torch.full((len(pieces), width), 1e-9)
    for before, after in pairs:
        counts[number[after], number[before]] += 1
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
        model.model.embed_tokens.weight.copy_(torch.eye(len(pieces), width))
        model.lm_head.weight.copy_(counts.log() / width**0.5)
    made = Tokenizer(models.WordLevel(number, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return _with_tokenizer(model, made, folder, chat=chat)


def tiny_summariser(folder):
    """Write a BART checkpoint."""
    import torch
    from transformers import BartConfig, BartForConditionalGeneration

    torch.manual_seed(0)
    words = _note_tokenizer()
    config = BartConfig(
        vocab_size=len(words),
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        max_position_embeddings=64,
        bos_token_id=0,
        pad_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=2,
        forced_eos_token_id=2,
    )
    BartForConditionalGeneration(config).save_pretrained(folder)
    words.save_pretrained(folder)
    return folder


def tiny_classifier(folder, *, labels, kind="texts"):
    """Write a DistilBERT checkpoint that classifies texts or tokens."""
    import torch
    from transformers import (
        DistilBertConfig,
        DistilBertForSequenceClassification,
        DistilBertForTokenClassification,
    )

    torch.manual_seed(0)
    words = _note_tokenizer()
    config = DistilBertConfig(
        vocab_size=len(words),
        dim=16,
        n_layers=1,
        n_heads=2,
        hidden_dim=16,
        max_position_embeddings=64,
        pad_token_id=1,
        id2label=dict(enumerate(labels)),
        label2id={label: i for i, label in enumerate(labels)},
    )
    made = DistilBertForTokenClassification if kind == "tokens" else DistilBertForSequenceClassification
    made(config).save_pretrained(folder)
    words.save_pretrained(folder)
    return folder


def _note_tokenizer():
    """Return a tokenizer for the words of a note."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate([*SPECIAL, *NOTE_WORDS])}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    return PreTrainedTokenizerFast(
        tokenizer_object=words,
        bos_token="<s>",
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
        model_max_length=64,
    )


def _saved(model, folder, *, chat=False):
    """Save a model with a byte tokenizer; return the folder."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    pieces = ["<pad>", "<unk>", "</s>", "<user>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    made = Tokenizer(models.BPE({piece: at for at, piece in enumerate(pieces)}, [], unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    return _with_tokenizer(model, made, folder, chat=chat)


def _with_tokenizer(model, made, folder, *, chat):
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, unk_token="<unk>", eos_token="</s>")
    tokenizer.add_special_tokens({"additional_special_tokens": ["<user>"]})
    if chat:
        tokenizer.chat_template = "{% for said in messages %}{{ said['content'] }} <user>{% endfor %}"
    with contextlib.redirect_stderr(io.StringIO()):
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    return folder
