"""Accuracy on records of a demo corpus, for a classifier trained on other records of that corpus."""

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline


def accuracy(train, test):
    model = make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression(C=10, max_iter=300))
    model.fit([record.text for record in train], [record.label for record in train])
    return model.score([record.text for record in test], [record.label for record in test])
