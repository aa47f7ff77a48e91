"""Models that count the tokens of the prompts for real models, and write about the requested number of words."""

from server.llm.base import Reply, accepted
from server.llm.completion import DECLINED, Completion
from server.llm.remote import chat
from server.tasks import demo_notes
from tests.support.prompts import render

WORDS = " ".join(demo_notes.public_text(120, 0)).split()


class Chat:
    """A remote chat model: it counts a token per four characters of its prompt, and 1.4 per word that it writes."""

    remote = False
    declines = frozenset()

    def __init__(self, *, name):
        self.name = self.identity = name
        self._at = 0

    def check(self):
        pass

    def estimate(self, request):
        return chat.estimate(render(request), request, 4096)

    def prompt(self, request):
        return "".join(render(request))

    def generate(self, requests, *, arrived=None):
        return [self._reply(accepted(request, self.declines)) for request in requests]

    def _reply(self, request):
        exemplars = request.good or request.source
        words = request.words or (sum(len(text.split()) for text in exemplars) // len(exemplars) if exemplars else 60)
        texts = tuple(self._text(3 if request.phrases else words) for _ in range(request.n))
        written = round(1.4 * sum(len(text.split()) for text in texts))
        return Reply(texts=texts, input_tokens=len(self.prompt(request)) // 4, output_tokens=written)

    def _text(self, words):
        self._at = (self._at + 7919) % (len(WORDS) - 600)
        return " ".join(WORDS[self._at : self._at + words])


class Completing(Chat):
    """A small model that completes a list of examples."""

    declines = DECLINED

    def __init__(self, *, name, public_examples):
        super().__init__(name=name)
        self._public = tuple(public_examples)

    def prompt(self, request):
        return Completion().beginning(request, self._public).prompt

    def estimate(self, request):
        return len(self.prompt(request)) // 4, chat.estimate(render(request), request, 4096)[1]
