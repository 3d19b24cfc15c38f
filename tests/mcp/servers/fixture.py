"""An MCP server for tests, of either era, over stdio or HTTP, without any package.

    fixture.py [--era new|old] [--http PORT] [--only TOOL,TOOL]

Files in the working directory: `calls` has a line per call of a tool with an effect, `cancelled` one per
cancelled request, `starts` one per start, and `requests` one per HTTP request with its headers. A file
`die` makes the next start end at once.
"""

import json, os, re, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

P = "io.modelcontextprotocol/"
args = sys.argv[1:]
ERA = args[args.index("--era") + 1] if "--era" in args else "new"
PORT = int(args[args.index("--http") + 1]) if "--http" in args else None
ONLY = args[args.index("--only") + 1].split(",") if "--only" in args else None

lock = threading.RLock()
cancelled = set()
extra = []
listeners = []
tasks = {}


def note(file, line):
    with open(file, "a") as out:
        out.write(str(line) + "\n")


def schema(required=(), **properties):
    return {"type": "object", "properties": properties, "required": list(required)}


TEXT = {"type": "string"}
NUMBER = {"type": "number"}
READS, WRITES = {"readOnlyHint": True}, {"readOnlyHint": False, "destructiveHint": True}

TOOLS = [
    {"name": "echo", "title": "Echo", "description": "Says it again. " + "x" * 1200,
     "inputSchema": schema(["text"], text=TEXT), "annotations": READS},
    {"name": "digits", "description": "Gives the number back", "annotations": READS,
     "inputSchema": schema(["value"], value=NUMBER), "outputSchema": schema(["value"], value=NUMBER)},
    {"name": "wrong", "description": "Breaks its output schema", "annotations": READS,
     "inputSchema": schema(), "outputSchema": schema(["value"], value=NUMBER)},
    {"name": "unstructured", "inputSchema": schema(), "outputSchema": schema(["value"], value=NUMBER)},
    {"name": "fail", "description": "Fails", "inputSchema": schema(), "annotations": READS},
    {"name": "picky", "description": "Refuses its arguments", "inputSchema": schema(), "annotations": READS},
    {"name": "broken", "description": "A protocol error", "inputSchema": schema(), "annotations": READS},
    {"name": "picture", "description": "Text and an image", "inputSchema": schema(), "annotations": READS},
    {"name": "lines", "description": "Two texts", "inputSchema": schema(), "annotations": READS},
    {"name": "ask", "description": "Asks its user", "inputSchema": schema(), "annotations": READS},
    {"name": "big", "description": "A long text", "inputSchema": schema(bytes={"type": "integer"}), "annotations": READS},
    {"name": "append", "description": "Writes a line", "annotations": WRITES,
     "inputSchema": schema(text=TEXT, ms={"type": "integer"})},
    {"name": "put", "description": "Writes a line; dies at the first", "annotations": {"idempotentHint": True},
     "inputSchema": schema(text=TEXT)},
    {"name": "die", "description": "Ends during the call", "annotations": WRITES, "inputSchema": schema()},
    {"name": "slow", "description": "Takes a while", "annotations": READS,
     "inputSchema": schema(ms={"type": "integer"}, progress={"type": "boolean"})},
    {"name": "later", "description": "A task", "annotations": READS, "inputSchema": schema(ms={"type": "integer"})},
    {"name": "asking_task", "description": "A task that asks", "annotations": READS, "inputSchema": schema()},
    {"name": "grow", "description": "Adds the tool `grown`", "annotations": READS, "inputSchema": schema()},
    {"name": "shrink", "description": "Removes the tool `grown`", "annotations": READS, "inputSchema": schema()},
    {"name": "environment", "description": "Names of variables", "annotations": READS, "inputSchema": schema()},
    {"name": "where", "description": "Repeated in a header", "annotations": READS, "inputSchema": schema(
        place={"type": "string", "x-mcp-header": "Place"})},
    {"name": "unsellable", "description": "A schema that cannot be checked",
     "inputSchema": schema(text={"type": "string", "pattern": "(?=a)a"})},
]
GROWN = {"name": "grown", "description": "New", "annotations": READS, "inputSchema": schema()}


def tools():
    with lock:
        return [tool for tool in TOOLS if ONLY is None or tool["name"] in ONLY] + list(extra)


def text(value, **more):
    return {"content": [{"type": "text", "text": value}], **more}


class Refused(Exception):
    def __init__(self, code, message, data=None):
        self.error = {"code": code, "message": message, **({"data": data} if data else {})}


def call(id, name, arguments, raw, progress):
    def wait(ms, ticks=1):
        for tick in range(ticks):
            until = time.time() + ms / 1000 / ticks
            while time.time() < until:
                if id in cancelled:
                    raise Refused(-32800, "cancelled")
                time.sleep(0.01)
            progress(tick + 1, ticks, f"step {tick + 1}")

    print(f"called {name}", file=sys.stderr, flush=True)
    if name not in [tool["name"] for tool in tools()]:
        raise Refused(-32602, f"Unknown tool: {name}")
    if name == "echo":
        return text(arguments["text"])
    if name == "digits":
        return {"raw": '{"content":[],"structuredContent":{"value":%s}}' % re.search(r'"value":\s*([^,}\s]+)', raw)[1]}
    if name == "wrong":
        return text("x", structuredContent={"value": "not a number"})
    if name == "unstructured":
        return text("x")
    if name == "fail":
        return text("it broke: " + "x" * 3000, isError=True)
    if name == "picky":
        raise Refused(-32602, "the text must rhyme")
    if name == "broken":
        raise Refused(-32603, "a wheel came off")
    if name == "picture":
        return {"raw": '{"content":[{"type":"text","text":"a dot"},{"type":"image","data":"AA==","mimeType":"image/png","n":1.50}]}'}
    if name == "lines":
        return {"content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}
    if name == "ask":
        return {"resultType": "input_required", "inputRequests": {"a": {"method": "elicitation/create", "params": {}}}}
    if name == "big":
        return text("x" * arguments["bytes"])
    if name == "append":
        note("calls", arguments.get("text", "-"))
        wait(arguments.get("ms", 0))
        return text("written")
    if name == "put":
        first = not os.path.exists("calls")
        note("calls", arguments.get("text", "-"))
        if first:
            os._exit(3)
        return text("written")
    if name == "die":
        note("calls", "die")
        print("I cannot go on", file=sys.stderr, flush=True)
        os._exit(3)
    if name == "slow":
        wait(arguments.get("ms", 0), 4 if arguments.get("progress") else 1)
        return text("done")
    if name in ("later", "asking_task"):
        with lock:
            tasks[f"t{id}"] = (name, time.time() + arguments.get("ms", 0) / 1000)
        return {"resultType": "task", **state(f"t{id}")}
    if name in ("grow", "shrink"):
        with lock:
            extra[:] = [GROWN] if name == "grow" else []
            changed()
        return text("done")
    if name == "environment":
        return text(" ".join(sorted(os.environ)))
    if name == "where":
        return text(arguments.get("place", "nowhere"))
    return text("done")


def state(task):
    if task not in tasks:
        raise Refused(-32602, "Task not found")
    name, until = tasks[task]
    times = {"createdAt": "2026-11-19T00:00:00Z", "lastUpdatedAt": "2026-11-19T00:00:00Z", "ttlMs": None}
    base = {"taskId": task, "pollIntervalMs": 100, "statusMessage": "thinking", **times}
    if name == "asking_task":
        return {**base, "status": "input_required", "inputRequests": {}}
    done = time.time() >= until
    return {**base, "status": "completed", "result": text("thought")} if done else {**base, "status": "working"}


def changed():
    for send, subscription in list(listeners):
        meta = {"_meta": {P + "subscriptionId": subscription}} if subscription is not None else {}
        send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": meta})


def answer(id, method, params, raw, send):
    """The result of a request; `None` for one that stays open."""
    if ERA == "old" and method == "initialize":
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "fixture", "version": "1"}}
    if ERA == "new":
        if method == "server/discover":
            return {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {"listChanged": True},
                    "extensions": {P + "tasks": {}}}, "_meta": {P + "serverInfo": {"name": "fixture"}}}
        meta = params.get("_meta", {})
        note("capabilities", json.dumps(meta.get(P + "clientCapabilities")))
        if meta.get(P + "protocolVersion") != "2026-07-28":
            raise Refused(-32602, "no version")
        if method == "subscriptions/listen":
            with lock:
                listeners.append((send, id))
            send({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                  "params": {"notifications": params["notifications"], "_meta": {P + "subscriptionId": id}}})
            return None
        if method == "tasks/get":
            return state(params["taskId"])
        if method == "tasks/cancel":
            note("cancelled", params["taskId"])
            return {}
    if method == "tools/list":
        all, at = tools(), int(params.get("cursor", 0))
        more = {"nextCursor": str(at + 5)} if at + 5 < len(all) else {}
        return {"tools": all[at:at + 5], **more}
    if method == "tools/call":
        token = params.get("_meta", {}).get("progressToken")

        def progress(done, total, message):
            if token is not None:
                send({"jsonrpc": "2.0", "method": "notifications/progress",
                      "params": {"progressToken": token, "progress": done, "total": total, "message": message}})

        return call(id, params["name"], params.get("arguments", {}), raw, progress)
    raise Refused(-32601, f"Method not found: {method}")


def respond(message, raw, send):
    id = message["id"]
    try:
        result = answer(id, message["method"], message.get("params", {}), raw, send)
        if result is None:
            return False
        if "raw" in result:
            return '{"jsonrpc":"2.0","id":%s,"result":%s}' % (json.dumps(id), result["raw"])
        return json.dumps({"jsonrpc": "2.0", "id": id, "result": result})
    except Refused as refused:
        return None if id in cancelled else json.dumps({"jsonrpc": "2.0", "id": id, "error": refused.error})


def note_cancelled(message):
    if message.get("method") == "notifications/cancelled":
        cancelled.add(message["params"]["requestId"])
        note("cancelled", message["params"]["requestId"])


def stdio():
    def write(line):
        with lock:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()

    def send(message):
        write(json.dumps(message))

    if ERA == "old":
        with lock:
            listeners.append((send, None))
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            note_cancelled(message)
            continue

        def work(message=message, line=line):
            response = respond(message, line, send)
            if response:
                write(response)

        threading.Thread(target=work, daemon=True).start()
    # A server that ignores the end of its input has to be ended.
    while os.path.exists("stubborn"):
        time.sleep(0.05)


class Door(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, body="", kind="application/json", **headers):
        data = body.encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def stream(self):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True

    def event(self, message):
        line = message if isinstance(message, str) else json.dumps(message)
        with lock:
            self.wfile.write(f"data: {line}\n\n".encode())
            self.wfile.flush()

    def hold(self):
        """Until the client hangs up."""
        while True:
            time.sleep(0.05)
            with lock:
                self.wfile.write(b": still here\n\n")
                self.wfile.flush()

    def do_GET(self):
        if ERA == "new":
            return self.reply(405, allow="POST")
        self.stream()
        with lock:
            listeners.append((self.event, None))
        self.hold()

    def do_DELETE(self):
        note("cancelled", "session")
        self.reply(200)

    def do_POST(self):
        raw = self.rfile.read(int(self.headers["content-length"])).decode()
        message = json.loads(raw)
        note("requests", json.dumps({"method": message.get("method"), **{k.lower(): v for k, v in self.headers.items()}}))
        if os.path.exists("gone") and message.get("method") != "initialize":
            os.remove("gone")
            return self.reply(404)
        if "id" not in message:
            note_cancelled(message)
            return self.reply(202)
        if message["method"] == "tools/call" and message["params"]["arguments"].get("text") == "stumble":
            return self.reply(500, "a wheel came off", kind="text/plain")
        if ERA == "new" and self.headers.get("mcp-method") != message["method"]:
            return self.reply(400, json.dumps({"jsonrpc": "2.0", "id": message["id"],
                                              "error": {"code": -32020, "message": "Header mismatch"}}))
        session = {"Mcp_Session_Id": "s1"} if ERA == "old" and message["method"] == "initialize" else {}
        if message["method"] in ("tools/call", "subscriptions/listen"):
            self.stream()
            try:
                response = respond(message, raw, self.event)
                if response is False:
                    self.hold()
                elif response:
                    self.event(response)
            except OSError:
                cancelled.add(message["id"])
                note("cancelled", f"closed {message['id']}")
            return
        self.reply(200, respond(message, raw, None), **session)


note("starts", os.getpid())
print("fixture is here", file=sys.stderr, flush=True)
if os.path.exists("die"):
    print("bad configuration: no fuel", file=sys.stderr, flush=True)
    sys.exit(7)
if PORT is None:
    stdio()
else:
    ThreadingHTTPServer(("127.0.0.1", PORT), Door).serve_forever()
