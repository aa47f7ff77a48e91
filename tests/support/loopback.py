"""A server on loopback that speaks the wire formats of Messages, Message Batches and chat completions.

It answers first from a script and then with the number of new texts that each prompt requests, and records all
requests.
"""

import contextlib
import json
import re
import socket
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WANTED = re.compile(r"JSON list of (\d+) strings")


def error(kind, message="no", code=None):
    """Return an error in the form that both families of servers use."""
    return {"type": "error", "error": {"type": kind, "message": message, "code": code}}


def message(texts, stop="end_turn", written=None, usage=None):
    """Return one answer in the format of Messages."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "test-model",
        "content": [{"type": "text", "text": json.dumps(texts) if written is None else written}],
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 5} if usage is None else usage,
    }


def chat(texts, stop="stop", written=None, refusal=None, usage=None):
    """Return one answer in the format of chat completions."""
    content = json.dumps(texts) if written is None else written
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "test-model",
        "choices": [
            {
                "index": 0,
                "finish_reason": stop,
                "message": {"role": "assistant", "content": None if refusal else content, "refusal": refusal},
            }
        ],
        "usage": {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16} if usage is None else usage,
    }


class Loopback:
    """The server, which runs for the duration of its context.

    Attributes:
        script: The first answers: (status, headers, body), "cut", "cut short" or "slow".
        seen: Bodies of all requests for texts, in order; the requests in a batch are separate.
        paths: Paths of all requests.
        raw: All received bytes.
        most: Largest number of concurrent requests so far.
        missing: Whether the server has no list of models.
        unknown: Whether that list lacks the model.
    """

    def __init__(self, port=0):
        self.script, self.seen, self.paths, self.headers, self.raw = [], [], [], [], []
        self.active = self.most = 0
        self.missing = self.unknown = False
        self.batches, self.polls, self.results = {}, 1, {}
        self.lock, self.together, self.released = threading.Lock(), None, threading.Event()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self):
                owner._post(self)

            def do_GET(self):
                owner._get(self)

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *_):
                pass

        self.http = Server(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def close(self):
        self.released.set()
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()

    def _post(self, handler):
        sent = handler.rfile.read(int(handler.headers["content-length"]))
        body = json.loads(sent)
        with self.lock:
            self.raw.append(sent)
            self.paths.append(handler.path)
            self.headers.append(dict(handler.headers))
        if handler.path.endswith("/batches"):
            self._new_batch(handler, body)
            return
        with self.lock:
            self.active += 1
            self.most = max(self.most, self.active)
            number = len(self.seen)
            self.seen.append(body)
            answer = self.script.pop(0) if self.script else (200, {}, self._fresh(handler.path, body, number))
        if self.together is not None:
            self.together.wait(60)
        with self.lock:
            self.active -= 1
        self._give(handler, answer)

    def _give(self, handler, answer):
        if answer == "slow":
            self.released.wait(60)
            answer = "cut"
        if answer == "cut short":
            handler.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n{")
            handler.wfile.flush()
        if answer in ("cut", "cut short"):
            # Linger 0: the peer gets a reset, as from a proxy that drops connections.
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            handler.close_connection = True
            handler.connection.close()
            return
        status, headers, body = answer
        payload = body if isinstance(body, bytes) else json.dumps(body).encode()
        handler.send_response(status)
        for name, value in ({"content-type": "application/json"} | headers).items():
            handler.send_header(name, value)
        handler.send_header("content-length", str(len(payload)))
        handler.end_headers()
        with contextlib.suppress(OSError):
            handler.wfile.write(payload)

    def _fresh(self, path, body, number):
        count = WANTED.search(body["messages"][-1]["content"])
        word = "Subject" if "subtopic" in body["messages"][-1]["content"] else f"Text {number} of a kind, line"
        texts = [f"{word} {k}." for k in range(int(count[1]) if count else 1)]
        return chat(texts) if path.endswith("/chat/completions") else message(texts)

    def _new_batch(self, handler, body):
        with self.lock:
            answer = self.script.pop(0) if self.script else None
            if answer is None:
                name = f"batch_{len(self.batches)}"
                self.results[name] = self.polls
                numbered = enumerate(body["requests"], start=len(self.seen))
                self.batches[name] = [(one["custom_id"], one["params"], number) for number, one in numbered]
                self.seen += [one["params"] for one in body["requests"]]
        self._give(handler, answer or (200, {}, self._batch(name)))

    def _batch(self, name):
        ended = self.results[name] <= 0
        when = "2026-11-01T00:00:00Z"
        return {
            "id": name,
            "type": "message_batch",
            "processing_status": "ended" if ended else "in_progress",
            "created_at": when,
            "expires_at": when,
            "request_counts": dict.fromkeys(("canceled", "errored", "expired", "processing", "succeeded"), 0),
            "results_url": f"{self.url}/v1/messages/batches/{name}/results" if ended else None,
        }

    def _get(self, handler):
        with self.lock:
            self.paths.append(handler.path)
            self.headers.append(dict(handler.headers))
            scripted = self.script.pop(0) if self.script and "/models" in handler.path else None
        if scripted is not None:
            self._give(handler, scripted)
        elif "/models" in handler.path:
            known = {"id": "test-model", "type": "model", "object": "model", "created": 1, "owned_by": "nobody"}
            if self.missing:
                self._give(handler, (404, {}, {"detail": "Not Found"}))
            elif self.unknown:
                self._give(handler, (404, {}, error("not_found_error", code="model_not_found")))
            else:
                self._give(handler, (200, {}, known | {"display_name": "t", "created_at": "2026-01-01T00:00:00Z"}))
        elif handler.path.endswith("/results"):
            lines = [json.dumps(self._line(*one)) for one in reversed(self.batches[handler.path.split("/")[-2]])]
            self._give(handler, (200, {"content-type": "application/x-jsonl"}, "\n".join(lines).encode()))
        else:
            name = handler.path.split("/")[-1]
            with self.lock:
                self.results[name] -= 1
            self._give(handler, (200, {}, self._batch(name)))

    def _line(self, custom_id, params, number):
        special = self.results.get(number)
        result = special or {"type": "succeeded", "message": self._fresh("/v1/messages", params, number)}
        return {"custom_id": custom_id, "result": result}
