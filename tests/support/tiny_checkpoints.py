"""Transformers of a few thousand random weights, saved where a test wants to load one by its folder."""

WORDS = ["fever", "chest", "pain", "cough", "anna", "came", "the", "of", "a", "was", "happy", "sad", ".", "note"]
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]


def tokenizer():
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate([*SPECIAL, *WORDS])}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    return PreTrainedTokenizerFast(
        tokenizer_object=words, bos_token="<s>", pad_token="<pad>", eos_token="</s>", unk_token="<unk>",
        model_max_length=64,
    )  # fmt: skip


def tiny_summariser(folder):
    """A BART."""
    import torch
    from transformers import BartConfig, BartForConditionalGeneration

    torch.manual_seed(0)
    words = tokenizer()
    config = BartConfig(
        vocab_size=len(words), d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, max_position_embeddings=64,
        bos_token_id=0, pad_token_id=1, eos_token_id=2, decoder_start_token_id=2, forced_eos_token_id=2,
    )  # fmt: skip
    BartForConditionalGeneration(config).save_pretrained(folder)
    words.save_pretrained(folder)
    return folder


def tiny_classifier(folder, *, labels, kind="texts"):
    """A DistilBERT that classifies texts, or tokens."""
    import torch
    from transformers import (
        DistilBertConfig,
        DistilBertForSequenceClassification,
        DistilBertForTokenClassification,
    )

    torch.manual_seed(0)
    words = tokenizer()
    config = DistilBertConfig(
        vocab_size=len(words), dim=16, n_layers=1, n_heads=2, hidden_dim=16, max_position_embeddings=64, pad_token_id=1,
        id2label=dict(enumerate(labels)), label2id={label: i for i, label in enumerate(labels)},
    )  # fmt: skip
    made = DistilBertForTokenClassification if kind == "tokens" else DistilBertForSequenceClassification
    made(config).save_pretrained(folder)
    words.save_pretrained(folder)
    return folder
