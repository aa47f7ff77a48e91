"""The endpoints: models, and chat completions without streaming. Bodies and errors have OpenAI's form.

No body that a client sends is logged or kept. There is no key: anyone who can reach the address may use the model.
"""

import asyncio
import json
import time
import uuid
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from common.errors import ConfigError
from common.validate import in_range, integers, integers_in, known_keys, one_of
from server.llm.engines.base import Job
from server.llm.serve.model import ChatModel

MOST_TOKENS = 512
"""Tokens of an answer whose request names no limit."""
ROLES = ("system", "developer", "user", "assistant")
_LENGTHS = ("max_completion_tokens", "max_tokens")
_ONLY = {"n": 1, "stream": False}  # fields that may say nothing else
_FIELDS = ("model", "messages", *_LENGTHS, "temperature", "top_p", "seed", *_ONLY)
_SEEDS = 2**63  # what engines take
_LEAST_TOP_P = 1e-6
_LEFT = 499  # a client that has gone reads no status


class RequestError(HTTPException):
    """Error that is the response to a request, with the name of the wrong field and OpenAI's code, if there are any."""

    def __init__(self, status: int, message: str, *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(status, message)
        self.param, self.code = param, code


def application(model: ChatModel) -> Starlette:
    """Return the server of one model as an ASGI application."""
    card = {"id": model.name, "object": "model", "created": int(time.time()), "owned_by": "caucus"}

    async def models(_: Request) -> Response:
        return JSONResponse({"object": "list", "data": [card]})

    async def one_model(request: Request) -> Response:
        _check_name(request.path_params["name"], model)
        return JSONResponse(card)

    async def complete(request: Request) -> Response:
        try:
            job = read_job(await request.body(), model)
        except ConfigError as error:
            raise RequestError(HTTPStatus.BAD_REQUEST, str(error), param=str(error.what)) from error
        reply = asyncio.wrap_future(model.batches.submit(job))
        left = asyncio.ensure_future(request.receive())  # after a whole body, nothing comes but the client's leaving
        either: list[asyncio.Future[Any]] = [reply, left]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        left.cancel()
        if not reply.done():
            reply.cancel()
            return Response(status_code=_LEFT)
        if failure := reply.exception():
            raise RequestError(
                HTTPStatus.INTERNAL_SERVER_ERROR, f"the engine fails: {type(failure).__name__}. Restart the server"
            )
        return JSONResponse(_completion(model, job, reply.result()))

    routes = [
        Route("/v1/models", models),
        Route("/v1/models/{name:path}", one_model),
        Route("/v1/chat/completions", complete, methods=["POST"]),
    ]
    return Starlette(routes=routes, exception_handlers={HTTPException: _refusal})


def read_job(content: bytes, model: ChatModel) -> Job:
    """Return the engine's job for the content of a request; null stands for a field's default.

    Raises:
        ConfigError: A field is unknown, missing or wrong; `what` is its name. The message shows no message's content.
        RequestError: It is not JSON, is for another model, or does not fit into the model's context.
    """
    try:
        body = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise RequestError(HTTPStatus.BAD_REQUEST, "the body is not JSON. Send a JSON object", param="body") from error
    if not isinstance(body, dict):
        raise ConfigError("body", expected="a JSON object", got=type(body).__name__)
    fields = {name: value for name, value in body.items() if value is not None}
    known_keys("", fields, among=_FIELDS, required=("model", "messages"))
    _check_name(fields["model"], model)
    for name, only in _ONLY.items():
        if (got := fields.get(name, only)) is not only:
            raise ConfigError(name, expected=json.dumps(only), got=got)
    sampling = {name: fields[name] for name in ("temperature", "top_p", "seed") if name in fields}
    in_range(0, 2, temperature=sampling.get("temperature", 1))
    in_range(_LEAST_TOP_P, 1, top_p=sampling.get("top_p", 1))
    integers_in(0, _SEEDS - 1, seed=sampling.get("seed", 0))
    lengths = [name for name in _LENGTHS if name in fields]
    if len(lengths) > 1:
        raise ConfigError(lengths[0], got=f"{lengths[1]} as well", do="Leave one of them out")
    length_field = (lengths or _LENGTHS)[0]
    most = fields.get(length_field, MOST_TOKENS)
    integers(1, **{length_field: most})
    longest, context = model.checkpoint.longest_prompt(most), model.checkpoint.context
    if longest < 1:
        raise ConfigError(length_field, expected=f"less than the context of {context} tokens", got=most)
    messages = fields["messages"]
    if not isinstance(messages, list) or not messages:
        raise ConfigError("messages", expected="a list of at least one message", got=type(messages).__name__)
    job = model.job([_turn(*turn) for turn in enumerate(messages)], max_tokens=most, **sampling)
    if len(job.ids) > longest:
        message = (
            f"the prompt is too long: it has {len(job.ids)} tokens, and the context length of {context} leaves "
            f"{longest} before an answer of {most}. Shorten it, or ask for a shorter answer"
        )
        raise RequestError(HTTPStatus.BAD_REQUEST, message, param="messages", code="context_length_exceeded")
    return job


def _turn(place: int, message: object) -> Mapping[str, str]:
    """Return one message, checked; a developer's is a system's."""
    where = f"messages[{place}]"
    fields = known_keys(where, message, among=("role", "content", "name"), required=("role", "content"))
    one_of(f"{where}.role", fields["role"], among=ROLES)
    content = fields["content"]
    if not isinstance(content, str) or any("\ud800" <= character <= "\udfff" for character in content):
        raise ConfigError(f"{where}.content", expected="text", got=type(content).__name__)
    return {"role": "system" if fields["role"] == "developer" else fields["role"], "content": content}


def _check_name(name: object, model: ChatModel) -> None:
    if name != model.name:
        message = f"the model {name!r} is not here. Ask for {model.name}"
        raise RequestError(HTTPStatus.NOT_FOUND, message, param="model", code="model_not_found")


def _completion(model: ChatModel, job: Job, ids: list[int]) -> dict[str, Any]:
    message = {"role": "assistant", "content": model.checkpoint.text(ids), "refusal": None}
    reason = "length" if len(ids) >= job.max_new_tokens else "stop"
    read, written = len(job.ids), len(ids)
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model.name,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": reason}],
        "usage": {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written},
    }


async def _refusal(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status, param, code = error.status_code, getattr(error, "param", None), getattr(error, "code", None)
    kind = "invalid_request_error" if status < HTTPStatus.INTERNAL_SERVER_ERROR else "server_error"
    return JSONResponse({"error": {"message": error.detail, "type": kind, "param": param, "code": code}}, status)
