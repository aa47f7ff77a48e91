"""Models of a few thousand random weights, saved to disk as any other would be."""

import contextlib
import io

WORDS = ("fever", "and", "cough")


def tiny_bert(folder, words=WORDS, *, seed=0):
    """A BERT checkpoint of one small random layer, with the tokenizer of these words."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder.mkdir(parents=True)
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    (folder / "vocab.txt").write_text("\n".join(pieces))
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(pieces), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
    )
    with contextlib.redirect_stderr(io.StringIO()):
        BertModel(config).save_pretrained(folder)
        BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    return folder


def tiny_transformer(folder, *, prompts=None, normalised=False):
    """A real SentenceTransformer of one small random BERT layer."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

    saved = folder / "saved"
    transformer = Transformer(str(tiny_bert(folder / "bert")))
    modules = [transformer, Pooling(transformer.get_embedding_dimension()), *([Normalize()] if normalised else [])]
    model = SentenceTransformer(modules=modules, prompts=prompts, device="cpu")
    model.save(str(saved), create_model_card=False)
    return saved
