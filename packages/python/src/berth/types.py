"""What the service takes and answers, by the names that its API has. Written by `npm run gen` from openapi.json: do not
edit."""

from __future__ import annotations

from typing import Any, Dict, List, Literal, TypedDict

ErrorCode = Literal["validation", "unauthorized", "forbidden", "policy_violation", "quota_exceeded", "payment_required", "not_found", "invalid_state", "conflict", "method_not_allowed", "request_timeout", "payload_too_large", "unsupported_media_type", "misdirected_request", "upgrade_required", "headers_too_large", "provider_error", "unavailable", "internal"]
RecipeName = Literal["postgres", "mariadb", "redis", "mongodb", "neo4j", "rabbitmq", "etcd", "node", "python", "static", "debian", "docker", "browser", "claude-code", "codex", "codex-executor", "codex-environment", "web-with-postgres"]
Size = Literal["nano", "small", "medium", "large"]
Mode = Literal["public", "private"]
Protocol = Literal["http", "postgres", "mysql", "redis", "mongodb", "amqp", "bolt", "grpc"]
Signal = Literal["HUP", "INT", "QUIT", "KILL", "USR1", "USR2", "TERM", "STOP", "CONT"]
Topic = Literal["question", "bug", "idea"]


class AgentClient(TypedDict):
    """The connected OAuth client."""

    id: str
    name: str | None
    uri: str | None
    icon: str | None


class AgentAgent(TypedDict):
    """The agent that used the credential last, as it names itself. Updated once a minute; null for an unknown agent."""

    name: str
    title: str
    version: str | None
    userAgent: str | None


class AgentCreatedBy(TypedDict):
    name: str | None
    email: str | None


class Agent(TypedDict):
    id: str
    kind: Literal["key", "oauth"]
    name: str
    #: The first characters of the key, to recognize it by.
    prefix: str | None
    policy: Policy
    #: The connected OAuth client.
    client: AgentClient | None
    #: The agent that used the credential last, as it names itself. Updated once a minute; null for an unknown agent.
    agent: AgentAgent | None
    createdBy: AgentCreatedBy | None
    createdAt: str
    connectedAt: str | None
    #: Updated once a minute.
    lastUsedAt: str | None
    #: What it has spent since midnight in UTC, against `dailySpendCapCents`.
    spentTodayCents: float
    #: How many units it runs, against `maxConcurrentUnits`.
    liveUnits: int
    revokedAt: str | None


class AgentChangePolicyRates(TypedDict, total=False):
    """Calls a minute, of all kinds, those that make units, and commands. One that is left out is the rate of the service; `GET /v1/quota` has all of them."""

    requests: int
    creations: int
    execs: int


class AgentChangePolicy(TypedDict, total=False):
    """Omitted fields stay unchanged."""

    maxConcurrentUnits: int
    dailySpendCapCents: int
    allowedSizes: List[Literal["nano", "small", "medium", "large"]]
    allowedRegistries: List[str]
    maxSleep: str
    expiresAt: str | None
    egress: EgressBound
    #: Calls a minute, of all kinds, those that make units, and commands. One that is left out is the rate of the service; `GET /v1/quota` has all of them.
    rates: AgentChangePolicyRates
    #: Whether containers may run in its units: `nested` in their spec.
    allowNested: bool
    #: The secrets of the team that its units may bind. `*` stands for all, and for the right to put and delete them. Only an owner or admin may give it.
    allowedSecrets: List[str]


class AgentChange(TypedDict, total=False):
    name: str
    #: Omitted fields stay unchanged.
    policy: AgentChangePolicy


class AgentChangedNarrowed(TypedDict):
    id: str
    name: str


class AgentChanged(TypedDict):
    agent: Agent
    #: The units whose rules of egress became narrower with this change, or that lost a secret.
    narrowed: List[AgentChangedNarrowed]


class AgentDryRunStop(TypedDict):
    id: str
    name: str


class AgentDryRunNarrow(TypedDict):
    id: str
    name: str


class AgentDryRun(TypedDict):
    #: The running units that the change would stop at once, oldest first. They could run again once the policy allows it.
    stops: List[AgentDryRunStop]
    #: The units whose rules of egress the change would narrow, or whose secrets it would take, oldest first. They run on.
    narrows: List[AgentDryRunNarrow]


class AgentDryRunAskedPolicyRates(TypedDict, total=False):
    """Calls a minute, of all kinds, those that make units, and commands. One that is left out is the rate of the service; `GET /v1/quota` has all of them."""

    requests: int
    creations: int
    execs: int


class AgentDryRunAskedPolicy(TypedDict, total=False):
    """The change, as PATCH takes it. Omitted fields stay unchanged."""

    maxConcurrentUnits: int
    dailySpendCapCents: int
    allowedSizes: List[Literal["nano", "small", "medium", "large"]]
    allowedRegistries: List[str]
    maxSleep: str
    expiresAt: str | None
    egress: EgressBound
    #: Calls a minute, of all kinds, those that make units, and commands. One that is left out is the rate of the service; `GET /v1/quota` has all of them.
    rates: AgentDryRunAskedPolicyRates
    #: Whether containers may run in its units: `nested` in their spec.
    allowNested: bool
    #: The secrets of the team that its units may bind. `*` stands for all, and for the right to put and delete them. Only an owner or admin may give it.
    allowedSecrets: List[str]


class AgentDryRunAsked(TypedDict):
    #: The change, as PATCH takes it. Omitted fields stay unchanged.
    policy: AgentDryRunAskedPolicy


class AgentListSeats(TypedDict):
    """Seats in use, and the seats of the plan."""

    used: int
    max: int


class AgentList(TypedDict):
    agents: List[Agent]
    #: Seats in use, and the seats of the plan.
    seats: AgentListSeats


class AgentRevoked(TypedDict):
    ok: Literal[True]


class _ArchiveWrittenRequired(TypedDict):
    path: str
    #: The size of the archive.
    bytes: int


class ArchiveWritten(_ArchiveWrittenRequired, total=False):
    #: Present if `path` is the base64 of its bytes, as of one that is not UTF-8.
    pathEncoding: Literal["base64"]


class AuditEventCredential(TypedDict):
    """The credential of the call, with its name at that time."""

    id: str
    kind: Literal["key", "oauth", "session"]
    name: str


class AuditEvent(TypedDict):
    id: str
    #: When the call arrived.
    at: str
    #: The credential of the call, with its name at that time.
    credential: AuditEventCredential
    #: The person behind the credential.
    userId: str | None
    action: str
    #: The id of the unit, stack, key or other object that the call was about.
    target: str | None
    #: The name of that unit, stack or key of the team, also if it is gone; null for anything else.
    targetName: str | None
    #: The input of the call: contents by size, environment variables by name, passwords masked.
    input: Dict[str, Any] | None
    #: The status of the answer; null if the service ended before it could answer.
    status: int | None
    errorCode: str | None
    durationMs: float | None
    costDeltaCents: float
    via: Literal["api", "dashboard", "mcp", "e2b"]
    agentName: str | None
    agentVersion: str | None
    userAgent: str | None
    requestId: str


class AuditList(TypedDict):
    events: List[AuditEvent]
    next: str | None


class CodeContext(TypedDict):
    id: str
    unitId: str
    language: Literal["python", "javascript", "typescript", "bash", "r"]
    cwd: str
    #: `lost`: the unit was started again without its memory. A restart begins it anew.
    state: Literal["starting", "idle", "busy", "lost"]
    createdAt: str


class CodeContextCreate(TypedDict, total=False):
    language: Literal["python", "javascript", "typescript", "bash", "r"]
    #: Default: `/home/user`.
    cwd: str
    #: Added to the unit's environment, and overrides it.
    env: Dict[str, str]


class CodeContextList(TypedDict):
    #: Oldest first.
    contexts: List[CodeContext]


class CodeFailure(TypedDict):
    #: Such as `ZeroDivisionError`. `KernelDied`: the context was begun anew, without its variables.
    name: str
    value: str
    traceback: List[str]


class CodeResult(TypedDict):
    context: str
    language: Literal["python", "javascript", "typescript", "bash", "r"]
    #: How often the context has run code; null if it was begun anew.
    executionCount: int | None
    timedOut: bool
    #: Whether there was more output, or were more results, than an answer has.
    truncated: bool
    stdout: str
    stderr: str
    #: In the order in which they came.
    results: List[CodeValue]
    error: CodeFailure


class _CodeRunRequired(TypedDict):
    code: str


class CodeRun(_CodeRunRequired, total=False):
    #: Default: that of the context; without one, `python`. Each language has a context of its own.
    language: Literal["python", "javascript", "typescript", "bash", "r"]
    #: The id of a context. Default: one that the first run in the language makes.
    context: str
    #: For this run alone; in Python only.
    env: Dict[str, str]
    #: The code is interrupted then. A context that does not stop is begun anew.
    timeoutMs: int


class CodeValue(TypedDict):
    #: The same value in several forms, by MIME type: text as it is, images in base64, JSON as data. HTML is what the code made: show it in a frame without rights only.
    data: Dict[str, Any]
    #: Whether it is the value of the last line, and not shown in between.
    main: bool


class CreateFromRecipeEgress(TypedDict, total=False):
    """What every unit that the recipe creates may reach. Default: what the credential and its team allow."""

    #: Which public hosts: `open` all, `listed` those of `allow`, `none` no host. Default: that of the credential's bound, with its `allow`.
    mode: Literal["open", "listed", "none"]
    #: For `listed`: names such as `api.github.com`, `*.pythonhosted.org` (names below it) and `github.com:22`, ranges such as `203.0.113.0/24` and `203.0.113.7/32:5432`, and presets such as `preset:npm`. A name without a port means ports 80 and 443. Names of units, below `internal`, are refused: `siblings` decides them.
    allow: List[str]
    #: Ranges such as `203.0.113.0/24` or addresses that are refused, whatever else allows them. Absent: none. Default: that of the credential's bound.
    deny: List[str]
    #: Which units of the team: `team` all, `stack` those of its stack, `none` no unit. Default: that of the credential's bound.
    siblings: Literal["team", "stack", "none"]


class _CreateFromRecipeRequired(TypedDict):
    #: The name of a recipe, as in `GET /v1/recipes`.
    recipe: str


class CreateFromRecipe(_CreateFromRecipeRequired, total=False):
    #: The parameters of the recipe, as in `GET /v1/recipes/{name}`; null means the default.
    params: Dict[str, Any]
    #: The name of the recipe's main unit, and the prefix of its other units' names. Default: the recipe's name.
    name: str
    #: Name of a stack; created if absent.
    stack: str
    #: Publish the recipe's default port at once. The answer has the URL in `outputs.URL`.
    expose: Literal["public", "private"]
    #: The idle window of every unit that the recipe creates.
    sleep: str
    #: What every unit that the recipe creates may reach. Default: what the credential and its team allow.
    egress: CreateFromRecipeEgress
    #: Labels of yours, for every unit that the recipe creates.
    metadata: Dict[str, str]
    #: How long the unit lives once it is ready, however much it is used. A number with `s`, `m`, `h` or `d`. Default: `never`, without an end.
    timeToLive: str
    #: What happens when that time has passed. `destroy` destroys the unit. `sleep` puts it to sleep, also in the middle of a command, and takes the time to live away: the unit wakes as any other, and then has no end until it is given one. `stop` stops it in the same way: it keeps its disk, and starts when it is told to. Default: `destroy`.
    atEnd: Literal["destroy", "sleep", "stop"]
    #: Whether to answer only once the units are ready.
    wait: bool
    #: After this time the call answers, although the unit may still be `creating`.
    waitTimeoutMs: int


class _CreateFromSpecRequired(TypedDict):
    spec: UnitSpec


class CreateFromSpec(_CreateFromSpecRequired, total=False):
    #: Name of a stack; created if absent.
    stack: str
    #: Publish a port at once: `spec.expose`, or the only one of `spec.ports`. The answer has the URL in `outputs.URL`.
    expose: Literal["public", "private"]
    #: Whether to answer only once the units are ready.
    wait: bool
    #: After this time the call answers, although the unit may still be `creating`.
    waitTimeoutMs: int


class _DirectoryEntryRequired(TypedDict):
    #: Of an entry further down, its path from the listed folder.
    name: str
    type: Literal["file", "directory", "link", "other"]
    #: In four octal digits, such as "0755".
    mode: str
    bytes: int
    modifiedAt: str
    #: The number of its owner.
    uid: int
    #: The number of its group.
    gid: int
    #: The owner's name in the unit; null if it has none.
    owner: str | None
    #: The group's name in the unit; null if it has none.
    group: str | None


class DirectoryEntry(_DirectoryEntryRequired, total=False):
    #: Present if the name is not UTF-8. `name` is then the base64 of its bytes; give paths so with `pathEncoding=base64`.
    encoding: Literal["base64"]


class _DirectoryListRequired(TypedDict):
    path: str
    #: Sorted by name.
    entries: List[DirectoryEntry]
    #: Send it as `after` for the entries after these; null on the last page.
    next: str | None
    #: The directory has more than 20000 entries, and only that many can be listed.
    truncated: bool


class DirectoryList(_DirectoryListRequired, total=False):
    #: Present if `path` is the base64 of its bytes, as of one that is not UTF-8.
    pathEncoding: Literal["base64"]


class _DirectoryMadeRequired(TypedDict):
    path: str
    #: Whether it was not there before.
    made: bool


class DirectoryMade(_DirectoryMadeRequired, total=False):
    #: Present if `path` is the base64 of its bytes, as of one that is not UTF-8.
    pathEncoding: Literal["base64"]


class _DirectoryMakeRequired(TypedDict):
    path: str


class DirectoryMake(_DirectoryMakeRequired, total=False):
    #: Present if `path` is the base64 of its bytes, as of one that is not UTF-8.
    pathEncoding: Literal["base64"]
    #: The mode of the file, in octal: "0755". Without it an existing file keeps its mode, and a new one gets 0644. An existing file keeps its owner, unless `user` names another.
    mode: str
    #: Its owner, and that of folders made above it: a name or a number of the unit's `/etc/passwd`. Without it an existing file keeps its owner, and a new one is of root.
    user: str


class Done(TypedDict):
    ok: Literal[True]


class EgressAsked(TypedDict, total=False):
    #: Which public hosts: `open` all, `listed` those of `allow`, `none` no host. Default: that of the credential's bound, with its `allow`.
    mode: Literal["open", "listed", "none"]
    #: For `listed`: names such as `api.github.com`, `*.pythonhosted.org` (names below it) and `github.com:22`, ranges such as `203.0.113.0/24` and `203.0.113.7/32:5432`, and presets such as `preset:npm`. A name without a port means ports 80 and 443. Names of units, below `internal`, are refused: `siblings` decides them.
    allow: List[str]
    #: Ranges such as `203.0.113.0/24` or addresses that are refused, whatever else allows them. Absent: none. Default: that of the credential's bound.
    deny: List[str]
    #: Which units of the team: `team` all, `stack` those of its stack, `none` no unit. Default: that of the credential's bound.
    siblings: Literal["team", "stack", "none"]


class EgressBound(TypedDict, total=False):
    #: Which public hosts: `open` all, `listed` those of `allow`, `none` no host.
    mode: Literal["open", "listed", "none"]
    #: For `listed`: names such as `api.github.com`, `*.pythonhosted.org` (names below it) and `github.com:22`, ranges such as `203.0.113.0/24` and `203.0.113.7/32:5432`, and presets such as `preset:npm`. A name without a port means ports 80 and 443. Names of units, below `internal`, are refused: `siblings` decides them.
    allow: List[str]
    #: Ranges such as `203.0.113.0/24` or addresses that are refused, whatever else allows them. Absent: none.
    deny: List[str]
    #: Which units of the team: `team` all, `stack` those of its stack, `none` no unit.
    siblings: Literal["team", "stack", "none"]


class EgressCheck(TypedDict):
    #: A host name, an IPv4 address, or the internal host of a unit.
    host: str
    port: int


class EgressDecision(TypedDict):
    decision: Literal["allowed", "refused"]
    #: The entry that allows it; null for a refusal, and where no entry is needed.
    rule: str | None
    #: Why, as a sentence; for a refusal also what to do.
    reason: str


class _EgressInForceRequired(TypedDict):
    #: Which public hosts: `open` all, `listed` those of `allow`, `none` no host.
    mode: Literal["open", "listed", "none"]
    #: For `listed`: names such as `api.github.com`, `*.pythonhosted.org` (names below it) and `github.com:22`, ranges such as `203.0.113.0/24` and `203.0.113.7/32:5432`, and presets such as `preset:npm`. A name without a port means ports 80 and 443. Names of units, below `internal`, are refused: `siblings` decides them.
    allow: List[str]
    #: Which units of the team: `team` all, `stack` those of its stack, `none` no unit.
    siblings: Literal["team", "stack", "none"]
    #: Counts the changes of the rules and of brokered secrets; 0 for a unit without any.
    version: int
    #: Since when this version is in force; null until it is.
    appliedAt: str | None


class EgressInForce(_EgressInForceRequired, total=False):
    #: Ranges such as `203.0.113.0/24` or addresses that are refused, whatever else allows them. Absent: none.
    deny: List[str]


class EgressLogLine(TypedDict):
    #: The minute that the line sums up.
    at: str
    #: In lower-case ASCII. Null where the connection named none, or nothing that can be a public host. Null also in the line for all beyond those that a minute has lines for. And null for a minute in which the rules were not enforced: nothing listed was reached then.
    host: str | None
    #: Where the newest of these connections led.
    address: str | None
    #: Null for a name that was refused when it was looked up.
    port: int | None
    #: `dns`: its look-ups, of names that are refused or are listed with another port than 80 and 443.
    protocol: Literal["http", "tls", "dns"]
    decision: Literal["allowed", "refused"]
    #: The entry that allows it.
    rule: str | None
    #: Why, as a sentence.
    reason: str
    #: What to add to `allow` so that it is allowed; null where no entry would do that.
    entry: str | None
    #: The name of the secret that was put into its requests.
    secret: str | None
    #: From the host. Counted when a connection ends, in the minute in which it began.
    bytesIn: int
    #: To the host, likewise.
    bytesOut: int
    #: How many connections, requests on port 80, or look-ups. Zero in the line of a minute in which the rules were not enforced.
    count: int


class EgressLogPage(TypedDict):
    lines: List[EgressLogLine]
    #: Send it as `since` to get the lines after these. A line of before comes again if it has grown.
    next: str | None


class _EgressSetPreviousRequired(TypedDict):
    #: Which public hosts: `open` all, `listed` those of `allow`, `none` no host.
    mode: Literal["open", "listed", "none"]
    #: For `listed`: names such as `api.github.com`, `*.pythonhosted.org` (names below it) and `github.com:22`, ranges such as `203.0.113.0/24` and `203.0.113.7/32:5432`, and presets such as `preset:npm`. A name without a port means ports 80 and 443. Names of units, below `internal`, are refused: `siblings` decides them.
    allow: List[str]
    #: Which units of the team: `team` all, `stack` those of its stack, `none` no unit.
    siblings: Literal["team", "stack", "none"]


class EgressSetPrevious(_EgressSetPreviousRequired, total=False):
    """The rules before this call."""

    #: Ranges such as `203.0.113.0/24` or addresses that are refused, whatever else allows them. Absent: none.
    deny: List[str]


class _EgressSetRequired(TypedDict):
    #: Which public hosts: `open` all, `listed` those of `allow`, `none` no host.
    mode: Literal["open", "listed", "none"]
    #: For `listed`: names such as `api.github.com`, `*.pythonhosted.org` (names below it) and `github.com:22`, ranges such as `203.0.113.0/24` and `203.0.113.7/32:5432`, and presets such as `preset:npm`. A name without a port means ports 80 and 443. Names of units, below `internal`, are refused: `siblings` decides them.
    allow: List[str]
    #: Which units of the team: `team` all, `stack` those of its stack, `none` no unit.
    siblings: Literal["team", "stack", "none"]
    #: Counts the changes of the rules and of brokered secrets; 0 for a unit without any.
    version: int
    #: Since when this version is in force; null until it is.
    appliedAt: str | None
    #: The rules before this call.
    previous: EgressSetPrevious


class EgressSet(_EgressSetRequired, total=False):
    #: Ranges such as `203.0.113.0/24` or addresses that are refused, whatever else allows them. Absent: none.
    deny: List[str]


class _EndpointRequired(TypedDict):
    id: str
    port: int
    protocol: Literal["http", "postgres", "mysql", "redis", "mongodb", "amqp", "bolt", "grpc"]
    mode: Literal["public", "private"]
    #: For a TCP endpoint: its address without the password; for a database from a recipe with user and database name.
    url: str


class Endpoint(_EndpointRequired, total=False):
    #: A port for clients that cannot send a server name (SNI): use it with the same host, with TLS.
    portWithoutSni: int


class _ExecRequired(TypedDict):
    cmd: List[str]


class Exec(_ExecRequired, total=False):
    #: Default: the working directory of the unit's own process.
    cwd: str
    #: Added to the unit's environment, and overrides it.
    env: Dict[str, str]
    timeoutMs: int
    stdin: str
    #: Who runs it: a name or a number of the unit's `/etc/passwd`, whose home is then `HOME`. Default: the user of the unit's own process.
    user: str
    #: To have `stdout` and `stderr` of the answer in base64, byte for byte. A stream has base64 where it needs it.
    encoding: Literal["base64"]


class _ExecResultRequired(TypedDict):
    exitCode: int
    #: As UTF-8; invalid bytes become U+FFFD.
    stdout: str
    stderr: str
    timedOut: bool
    #: Whether stdout or stderr was longer than 1 MB and was cut.
    truncated: bool


class ExecResult(_ExecResultRequired, total=False):
    #: Present if both are in base64, as the call asked.
    encoding: Literal["base64"]


class _ExposeRequired(TypedDict):
    #: The port in the unit that visits are sent to. If the unit declares ports, it must be one of them.
    port: int


class Expose(_ExposeRequired, total=False):
    #: Default: the current mode, or `private` at the first publishing.
    mode: Literal["public", "private"]
    #: Whether to make a new address. The old one stops working within a second.
    rotate: bool
    #: Default: the protocol that the unit declares for this port, else the current one, else `http`.
    protocol: Literal["http", "postgres", "mysql", "redis", "mongodb", "amqp", "bolt", "grpc"]


class _ExposedRequired(TypedDict):
    url: str
    mode: Literal["public", "private"]
    port: int


class Exposed(_ExposedRequired, total=False):
    #: A side effect of the call, such as a restart of the unit.
    warning: str


class _FileDeletedRequired(TypedDict):
    path: str


class FileDeleted(_FileDeletedRequired, total=False):
    #: Present if `path` is the base64 of its bytes, as of one that is not UTF-8.
    pathEncoding: Literal["base64"]


class _FileFactsRequired(TypedDict):
    path: str
    type: Literal["file", "directory", "link", "other"]
    #: In four octal digits, such as "0755".
    mode: str
    bytes: int
    modifiedAt: str
    #: The number of its owner.
    uid: int
    #: The number of its group.
    gid: int
    #: The owner's name in the unit; null if it has none.
    owner: str | None
    #: The group's name in the unit; null if it has none.
    group: str | None
    #: Where a link leads, as it is written in it, with U+FFFD for what is not UTF-8; null for others.
    target: str | None


class FileFacts(_FileFactsRequired, total=False):
    #: Present if `path` is the base64 of its bytes, as of one that is not UTF-8.
    pathEncoding: Literal["base64"]


class _FileMoveRequired(TypedDict):
    path: str
    #: The new path, in base64 like `path` with `pathEncoding`.
    to: str


class FileMove(_FileMoveRequired, total=False):
    #: Present if `path` is the base64 of its bytes, as of one that is not UTF-8.
    pathEncoding: Literal["base64"]
    #: Its owner, and that of folders made above it: a name or a number of the unit's `/etc/passwd`. Without it an existing file keeps its owner, and a new one is of root.
    user: str


class _FileMovedRequired(TypedDict):
    path: str


class FileMoved(_FileMovedRequired, total=False):
    #: Present if `path` is the base64 of its bytes, as of one that is not UTF-8.
    pathEncoding: Literal["base64"]


class _FileReadRequired(TypedDict):
    path: str
    contentBase64: str


class FileRead(_FileReadRequired, total=False):
    #: Present if `path` is the base64 of its bytes, as of one that is not UTF-8.
    pathEncoding: Literal["base64"]


class _FileWriteRequired(TypedDict):
    path: str
    contentBase64: str


class FileWrite(_FileWriteRequired, total=False):
    #: Present if `path` is the base64 of its bytes, as of one that is not UTF-8.
    pathEncoding: Literal["base64"]
    #: The mode of the file, in octal: "0755". Without it an existing file keeps its mode, and a new one gets 0644. An existing file keeps its owner, unless `user` names another.
    mode: str
    #: Its owner, and that of folders made above it: a name or a number of the unit's `/etc/passwd`. Without it an existing file keeps its owner, and a new one is of root.
    user: str


class _FileWrittenRequired(TypedDict):
    path: str
    bytes: int
    sha256: str
    #: Whether the unit computed the same SHA-256 from its disk.
    verified: bool


class FileWritten(_FileWrittenRequired, total=False):
    #: Present if `path` is the base64 of its bytes, as of one that is not UTF-8.
    pathEncoding: Literal["base64"]
    #: Present if the path is a boot file, which is written again at each start.
    warning: str


class ForkResult(TypedDict):
    units: List[Unit]
    #: What was copied of each unit, by the name of the unit.
    copied: Dict[str, Literal["memory", "disk", "config"]]
    outputs: Dict[str, str]
    #: Name of the stack of the copies.
    stack: str
    #: Units that were not copied, as `NAME: REASON`.
    skipped: List[str]
    #: Cost and sleep in words.
    costLine: str


class HostedAnswer(TypedDict):
    environment: HostedEnvironment
    #: Those that changed last, newest first; at most 100.
    sessions: List[HostedSession]


class HostedChangeEgress(TypedDict, total=False):
    """What they may reach."""

    #: Which public hosts: `open` all, `listed` those of `allow`, `none` no host. Default: that of the credential's bound, with its `allow`.
    mode: Literal["open", "listed", "none"]
    #: For `listed`: names such as `api.github.com`, `*.pythonhosted.org` (names below it) and `github.com:22`, ranges such as `203.0.113.0/24` and `203.0.113.7/32:5432`, and presets such as `preset:npm`. A name without a port means ports 80 and 443. Names of units, below `internal`, are refused: `siblings` decides them.
    allow: List[str]
    #: Ranges such as `203.0.113.0/24` or addresses that are refused, whatever else allows them. Absent: none. Default: that of the credential's bound.
    deny: List[str]
    #: Which units of the team: `team` all, `stack` those of its stack, `none` no unit. Default: that of the credential's bound.
    siblings: Literal["team", "stack", "none"]


class HostedChange(TypedDict, total=False):
    #: Off: no work is asked for, and what is under way goes back to the queue.
    on: bool
    #: The environment's credential, from the vendor's console. It is sealed, and no answer shows it.
    environmentKey: str
    #: The image of the units.
    image: str
    #: Their size.
    size: Literal["nano", "small", "medium", "large"]
    #: What they may reach.
    egress: HostedChangeEgress
    #: How long one may go unused before it sleeps.
    sleep: str
    #: How long one lives at most.
    timeToLive: str
    #: A unit that was prepared: those of sessions are copies of it, in place of image, size and rules.
    copyOf: str | None
    #: How many sessions work at one time; the work of others stays queued at the vendor.
    atOnce: int


class HostedChanged(TypedDict):
    environment: HostedEnvironment


class HostedCreatePolicyRates(TypedDict, total=False):
    """Calls a minute, of all kinds, those that make units, and commands. One that is left out is the rate of the service; `GET /v1/quota` has all of them."""

    requests: int
    creations: int
    execs: int


class HostedCreatePolicy(TypedDict, total=False):
    """Of the key that is made for it: what its sessions may run, reach and spend together."""

    maxConcurrentUnits: int
    dailySpendCapCents: int
    allowedSizes: List[Literal["nano", "small", "medium", "large"]]
    allowedRegistries: List[str]
    maxSleep: str
    expiresAt: str | None
    egress: EgressBound
    #: The secrets of the team that its units may bind. `*` stands for all, and for the right to put and delete them. Only an owner or admin may give it.
    allowedSecrets: List[str]
    #: Whether containers may run in its units: `nested` in their spec.
    allowNested: bool
    #: Calls a minute, of all kinds, those that make units, and commands. One that is left out is the rate of the service; `GET /v1/quota` has all of them.
    rates: HostedCreatePolicyRates


class _HostedCreateRequired(TypedDict):
    #: The id of the self-hosted environment, from the vendor’s console.
    environment: str
    #: The environment's credential, from the vendor's console. It is sealed, and no answer shows it.
    environmentKey: str


class HostedCreate(_HostedCreateRequired, total=False):
    #: Whose hosted agents: `claude`.
    vendor: Literal["claude"]
    #: Of the key that is made for it: what its sessions may run, reach and spend together.
    policy: HostedCreatePolicy
    #: The image of the units.
    image: str
    #: Their size.
    size: Literal["nano", "small", "medium", "large"]
    egress: EgressAsked
    #: How long one may go unused before it sleeps.
    sleep: str
    #: How long one lives at most.
    timeToLive: str
    #: A unit that was prepared: those of sessions are copies of it, in place of image, size and rules.
    copyOf: str | None
    #: How many sessions work at one time; the work of others stays queued at the vendor.
    atOnce: int


class HostedDeleted(TypedDict):
    ok: Literal[True]
    #: The units of its sessions, which are destroyed.
    destroyed: List[str]


class HostedEnvironmentKey(TypedDict):
    """The key whose policy bounds its sessions; revoked with the environment."""

    id: str
    name: str


class HostedEnvironmentEgress(TypedDict, total=False):
    """What they may reach."""

    #: Which public hosts: `open` all, `listed` those of `allow`, `none` no host. Default: that of the credential's bound, with its `allow`.
    mode: Literal["open", "listed", "none"]
    #: For `listed`: names such as `api.github.com`, `*.pythonhosted.org` (names below it) and `github.com:22`, ranges such as `203.0.113.0/24` and `203.0.113.7/32:5432`, and presets such as `preset:npm`. A name without a port means ports 80 and 443. Names of units, below `internal`, are refused: `siblings` decides them.
    allow: List[str]
    #: Ranges such as `203.0.113.0/24` or addresses that are refused, whatever else allows them. Absent: none. Default: that of the credential's bound.
    deny: List[str]
    #: Which units of the team: `team` all, `stack` those of its stack, `none` no unit. Default: that of the credential's bound.
    siblings: Literal["team", "stack", "none"]


class HostedEnvironment(TypedDict):
    id: str
    vendor: Literal["claude"]
    #: The vendor's id of it.
    environment: str
    on: bool
    #: `waiting`: for sessions. `full`: there is no room for another unit. `failing`: the vendor does not answer as it should. `refused`: it refuses the credential, or this service the key.
    state: Literal["off", "starting", "waiting", "full", "failing", "refused"]
    #: The last error, as a sentence, until it is over; or what was left for others.
    note: str | None
    notedAt: str | None
    #: The key whose policy bounds its sessions; revoked with the environment.
    key: HostedEnvironmentKey
    #: The image of the units.
    image: str
    #: Their size.
    size: Literal["nano", "small", "medium", "large"]
    #: What they may reach.
    egress: HostedEnvironmentEgress
    #: How long one may go unused before it sleeps.
    sleep: str
    #: How long one lives at most.
    timeToLive: str
    #: A unit that was prepared: those of sessions are copies of it, in place of image, size and rules.
    copyOf: str | None
    #: How many sessions work at one time; the work of others stays queued at the vendor.
    atOnce: int
    #: How many sessions work now.
    working: int
    createdAt: str


class HostedList(TypedDict):
    environments: List[HostedEnvironment]


class HostedSessionUnit(TypedDict):
    id: str
    name: str
    state: str


class HostedSession(TypedDict):
    #: The vendor's id of it.
    id: str
    #: `working`: a turn is under way. `waiting`: for the next one. `refused`: it cannot begin.
    state: Literal["working", "waiting", "refused", "ended"]
    #: Why it was refused, or what it works without.
    note: str | None
    #: How often its work has begun.
    turns: int
    unit: HostedSessionUnit | None
    #: What its units have cost.
    costCents: float
    beganAt: str
    changedAt: str


class Invitation(TypedDict):
    teamId: str
    teamName: str
    email: str
    role: Literal["owner", "admin", "member"]
    inviterName: str | None
    expiresAt: str
    expired: bool


class Invite(TypedDict):
    id: str
    email: str
    role: Literal["owner", "admin", "member"]
    #: The id of the person who sent it.
    invitedBy: str | None
    expiresAt: str
    createdAt: str


class _InviteCreateRequired(TypedDict):
    email: str


class InviteCreate(_InviteCreateRequired, total=False):
    role: Literal["admin", "member"]


class InviteCreated(TypedDict):
    invite: Invite


class KeyCreatePolicyRates(TypedDict, total=False):
    """Calls a minute, of all kinds, those that make units, and commands. One that is left out is the rate of the service; `GET /v1/quota` has all of them."""

    requests: int
    creations: int
    execs: int


class KeyCreatePolicy(TypedDict, total=False):
    maxConcurrentUnits: int
    dailySpendCapCents: int
    allowedSizes: List[Literal["nano", "small", "medium", "large"]]
    allowedRegistries: List[str]
    maxSleep: str
    expiresAt: str | None
    egress: EgressBound
    #: The secrets of the team that its units may bind. `*` stands for all, and for the right to put and delete them. Only an owner or admin may give it.
    allowedSecrets: List[str]
    #: Whether containers may run in its units: `nested` in their spec.
    allowNested: bool
    #: Calls a minute, of all kinds, those that make units, and commands. One that is left out is the rate of the service; `GET /v1/quota` has all of them.
    rates: KeyCreatePolicyRates


class _KeyCreateRequired(TypedDict):
    name: str


class KeyCreate(_KeyCreateRequired, total=False):
    policy: KeyCreatePolicy


class KeyCreated(TypedDict):
    key: Agent
    #: The key itself. Only this answer shows it.
    secret: str


class KeyList(TypedDict):
    keys: List[Agent]


class _LogLineRequired(TypedDict):
    at: str
    stream: Literal["stdout", "stderr"]
    text: str


class LogLine(_LogLineRequired, total=False):
    #: The line is longer than 256 KB and continues in the next line of the same stream.
    continues: Literal[True]


class LogPage(TypedDict):
    lines: List[LogLine]
    #: Send it as `since` to get the lines after these.
    next: str | None


class Me(TypedDict):
    user: User
    teams: List[Team]
    #: The team that calls without `x-berth-team` act in.
    currentTeamId: str
    regions: List[Region]
    freeCreditsOnVerifyCents: float
    apiUrl: str
    support: MeSupport
    #: Whether credits can be bought.
    payments: bool
    #: The longest idle window that a unit of the current team may have.
    maxSleep: str


class MeChange(TypedDict):
    name: str


class MeChanged(TypedDict):
    id: str
    name: str


class Member(TypedDict):
    userId: str
    name: str
    email: str
    role: Literal["owner", "admin", "member"]
    joinedAt: str


class MemberList(TypedDict):
    #: In the order in which they joined.
    members: List[Member]
    #: Open and expired invitations, newest first.
    invites: List[Invite]


class MemberRemovedKeysToReview(TypedDict):
    id: str
    name: str
    prefix: str


class MemberRemoved(TypedDict):
    ok: Literal[True]
    #: Valid keys that the removed member created. They stay with the team: revoke those that this person must not use.
    keysToReview: List[MemberRemovedKeysToReview]


class MeSupport(TypedDict):
    #: Whether `POST /v1/support` is mailed. Without a mail server it stays a file on the server.
    form: bool
    #: The address of support, if the operator has set one.
    email: str | None


class MetricsHistoryPoint(TypedDict):
    #: The beginning of the step.
    at: str
    #: Processor time of all its processes in this step.
    cpuMs: int
    #: The most of its samples, one a minute, without the page cache.
    memoryBytes: int
    receivedBytes: int
    sentBytes: int


class MetricsHistoryCheckpoint(TypedDict):
    at: str
    #: False: the checkpoint failed, so the next start was to boot from the disk.
    kept: bool


MetricsHistory = TypedDict("MetricsHistory", {"unitId": str, "range": Literal["day", "month"], "from": str, "until": str, "stepSeconds": int, "limitCpus": float, "points": List[MetricsHistoryPoint], "checkpoints": List[MetricsHistoryCheckpoint]})


class Payment(TypedDict):
    id: str
    #: `open`: not paid yet. `paid`: the credits were added.
    state: Literal["created", "open", "paid", "expired", "failed"]
    #: Euro cents.
    amountCents: int
    #: The URL at which a browser pays; null once the payment is closed.
    checkoutUrl: str | None
    #: The id of the person who requested it.
    createdBy: str
    createdAt: str
    #: When it was paid, expired or failed.
    closedAt: str | None


class PaymentAnswer(TypedDict):
    payment: Payment


class PaymentCreate(TypedDict):
    #: The amount in euro cents; the team gets the same amount in credits.
    amountCents: int


class PaymentEventAnswer(TypedDict):
    received: Literal[True]


class PaymentList(TypedDict):
    #: Newest first, at most 100.
    payments: List[Payment]


class PidSignalled(TypedDict):
    pid: int


class PolicyRates(TypedDict, total=False):
    """Calls a minute, of all kinds, those that make units, and commands. One that is left out is the rate of the service; `GET /v1/quota` has all of them."""

    requests: int
    creations: int
    execs: int


class Policy(TypedDict, total=False):
    maxConcurrentUnits: int
    dailySpendCapCents: int
    allowedSizes: List[Literal["nano", "small", "medium", "large"]]
    allowedRegistries: List[str]
    maxSleep: str
    expiresAt: str | None
    egress: EgressBound
    #: The secrets of the team that its units may bind. `*` stands for all, and for the right to put and delete them. Only an owner or admin may give it.
    allowedSecrets: List[str]
    #: Whether containers may run in its units: `nested` in their spec.
    allowNested: bool
    #: Calls a minute, of all kinds, those that make units, and commands. One that is left out is the rate of the service; `GET /v1/quota` has all of them.
    rates: PolicyRates


class PricingSize(TypedDict):
    size: Literal["nano", "small", "medium", "large"]
    vcpu: float
    memoryMb: int
    diskGb: int
    #: The price while a unit runs; a sleeping or stopped unit costs nothing.
    centsPerHour: float


class PricingPlanDiskGb(TypedDict):
    """How large the disks and volumes of all units of a team may be together, by plan."""

    hobby: int
    pro: int
    team: int


class Pricing(TypedDict):
    currency: Literal["eur"]
    #: From the smallest to the largest.
    sizes: List[PricingSize]
    #: The price of 1 GB for 30 days, whether the unit runs or not, until it is destroyed.
    volumeCentsPerGbMonth: float
    #: How large the disks and volumes of all units of a team may be together, by plan.
    planDiskGb: PricingPlanDiskGb
    #: Given once for each verified mail address.
    freeCreditsOnVerifyCents: float


ProcessOutputField = TypedDict("ProcessOutputField", {"from": int, "to": int})


class Process(TypedDict):
    id: str
    unitId: str
    #: Anything that looks like a password is masked, and a long command is cut.
    cmd: List[str]
    cwd: str | None
    keepsAwake: bool
    tag: str | None
    #: Whether its standard input is open to calls.
    takesInput: bool
    #: Until when it keeps the unit awake while it runs; null if it does not.
    awakeUntil: str | None
    #: `lost`: the process did not survive a sleep, restart or fork of the unit, or its end was not observed.
    state: Literal["running", "exited", "lost"]
    #: 128 + n for signal n; also 137 if the unit was stopped.
    exitCode: int | None
    #: The process id in the unit; also the id of its process group.
    pid: int | None
    startedAt: str
    endedAt: str | None
    #: The offsets of the stored bytes.
    output: ProcessOutputField


class ProcessInput(TypedDict, total=False):
    #: What to write, at most 256 KB.
    data: str
    #: If `data` is base64, for bytes that are not text.
    encoding: Literal["base64"]
    #: Whether standard input ends after `data`.
    end: bool


class ProcessInputTaken(TypedDict):
    #: How many bytes of `data` were written. If not all, the process did not read in time: send the rest again.
    taken: int


class ProcessKeepAwake(TypedDict, total=False):
    #: From now on; 0: no longer. Send it again before that is over to renew it.
    forMs: int


class ProcessList(TypedDict):
    #: Oldest first.
    processes: List[Process]


class ProcessOutput(TypedDict):
    #: In the order it was printed.
    output: List[ProcessPiece]
    #: Send it as `after` to get the output after this.
    next: int
    #: Bytes between `after` and `next` that were already deleted.
    dropped: int
    #: If it is not `running` and `output` is empty, there is no more output.
    state: Literal["running", "exited", "lost"]
    #: 128 + n for signal n; also 137 if the unit was stopped.
    exitCode: int | None


class _ProcessPieceRequired(TypedDict):
    stream: Literal["stdout", "stderr"]
    data: str


class ProcessPiece(_ProcessPieceRequired, total=False):
    #: Present if the data is not UTF-8.
    encoding: Literal["base64"]


class ProcessSignal(TypedDict, total=False):
    #: Sent to the process group; KILL also reaches all descendants of the process.
    signal: Literal["HUP", "INT", "QUIT", "KILL", "USR1", "USR2", "TERM", "STOP", "CONT"]


class _ProcessStartRequired(TypedDict):
    cmd: List[str]


class ProcessStart(_ProcessStartRequired, total=False):
    #: Default: the working directory of the unit's own process.
    cwd: str
    #: Added to the unit's environment, and overrides it.
    env: Dict[str, str]
    #: The content of standard input, which then ends unless `takesInput`.
    stdin: str
    #: Whether standard input stays open for POST /v1/units/{id}/processes/{processId}/input.
    takesInput: bool
    #: Whether the unit stays awake while the process runs, for an hour from its start; keep-awake renews it.
    keepsAwake: bool
    #: A name of yours, by which lists can be filtered.
    tag: str
    #: Who runs it: a name or a number of the unit's `/etc/passwd`, whose home is then `HOME`. Default: the user of the unit's own process.
    user: str


class ProcessTable(TypedDict):
    #: By pid.
    processes: List[ProcessTableEntry]
    #: Whether there are more than could be listed.
    truncated: bool


class ProcessTableEntry(TypedDict):
    pid: int
    parentPid: int
    uid: int
    #: The name of the uid in the unit; null if it has none.
    user: str | None
    #: One letter, as `ps` shows it: `R` runs, `S` sleeps, `Z` has ended.
    state: str
    #: Anything that looks like a password is masked, and a long command is cut.
    cmd: List[str]
    #: The background process that it belongs to; null if it belongs to none.
    processId: str | None
    #: Of that background process.
    tag: str | None


class ProviderList(TypedDict):
    #: The providers that people can sign in with.
    providers: List[Literal["github", "google"]]


class QuotaUnits(TypedDict):
    """Units that are creating, starting, running or stopping."""

    live: int
    max: int


class QuotaDisk(TypedDict):
    """The disks and volumes of all units of the team, including sleeping and stopped ones."""

    promisedGb: int
    maxGb: int


class QuotaSpendToday(TypedDict):
    cents: float
    #: Null for a session: only the limits of its team apply.
    capCents: int | None
    resetsAt: str


class _QuotaEgressRequired(TypedDict):
    #: Which public hosts: `open` all, `listed` those of `allow`, `none` no host.
    mode: Literal["open", "listed", "none"]
    #: For `listed`: names such as `api.github.com`, `*.pythonhosted.org` (names below it) and `github.com:22`, ranges such as `203.0.113.0/24` and `203.0.113.7/32:5432`, and presets such as `preset:npm`. A name without a port means ports 80 and 443. Names of units, below `internal`, are refused: `siblings` decides them.
    allow: List[str]
    #: Which units of the team: `team` all, `stack` those of its stack, `none` no unit.
    siblings: Literal["team", "stack", "none"]


class QuotaEgress(_QuotaEgressRequired, total=False):
    """The most that a unit of the credential may reach."""

    #: Ranges such as `203.0.113.0/24` or addresses that are refused, whatever else allows them. Absent: none.
    deny: List[str]


class QuotaRate(TypedDict):
    name: Literal["requests", "creations", "execs"]
    #: Calls per minute.
    limit: int
    remaining: int
    #: When the whole limit is available again.
    resetsAt: str


class Quota(TypedDict):
    #: Units that are creating, starting, running or stopping.
    units: QuotaUnits
    #: The disks and volumes of all units of the team, including sleeping and stopped ones.
    disk: QuotaDisk
    spendToday: QuotaSpendToday
    #: The balance of the team.
    creditBalanceCents: float
    allowedSizes: List[Literal["nano", "small", "medium", "large"]]
    allowedRegistries: List[str]
    #: The longest idle window that the credential may set.
    maxSleep: str
    expiresAt: str | None
    #: The most that a unit of the credential may reach.
    egress: QuotaEgress
    #: The secrets of the team that units of the credential may bind; `*` stands for all.
    allowedSecrets: List[str]
    #: Whether containers may run in units of the credential.
    allowNested: bool
    #: The rate limits of the credential. This call is already counted.
    rates: List[QuotaRate]


class RecentMetricsUnit(TypedDict):
    id: str
    #: Processor time in each step; null where the unit slept or was stopped.
    cpuMs: List[int | None]


RecentMetrics = TypedDict("RecentMetrics", {"from": str, "stepSeconds": int, "units": List[RecentMetricsUnit]})


class RecipeOutput(TypedDict):
    name: str
    description: str
    #: Whether it contains a generated secret, which only the answer to the create shows.
    secret: bool


class RecipeUnitDatabasePort(TypedDict):
    port: int
    protocol: Literal["http", "postgres", "mysql", "redis", "mongodb", "amqp", "bolt", "grpc"]


class RecipeUnitVolume(TypedDict):
    mount: str
    gb: int


class RecipeUnit(TypedDict):
    #: The default name; the create can set another.
    name: str
    image: str
    size: Literal["nano", "small", "medium", "large"]
    ports: List[int]
    databasePorts: List[RecipeUnitDatabasePort]
    volume: RecipeUnitVolume | None


class RecipeFrontDoor(TypedDict):
    """The unit and port that `expose` of a create publishes; null if the recipe cannot be published."""

    unit: str
    port: int


class Recipe(TypedDict):
    name: str
    title: str
    description: str
    tags: List[str]
    params: List[RecipeParameter]
    #: The names of the outputs in the answer to a create, besides `URL` for a published unit.
    outputs: List[RecipeOutput]
    #: The units with default parameters, in the order in which they start.
    units: List[RecipeUnit]
    #: The unit and port that `expose` of a create publishes; null if the recipe cannot be published.
    frontDoor: RecipeFrontDoor | None


class RecipeItem(TypedDict):
    name: str
    title: str
    description: str
    tags: List[str]


class RecipeList(TypedDict):
    recipes: List[RecipeItem]


class RecipeParameter(TypedDict):
    name: str
    type: Literal["string", "integer", "enum", "record", "secret"]
    #: The allowed values of an enum.
    options: List[str] | None
    #: The default, encoded as JSON.
    defaultValue: str | None
    required: bool
    description: str | None
    #: The format of a value.
    format: str | None


class Region(TypedDict):
    id: Literal["paris", "virginia", "singapore"]
    label: str
    country: str
    zone: str
    #: Whether it is in the European Union.
    eu: bool


class RoleChange(TypedDict):
    role: Literal["owner", "admin", "member"]


class RunResult(TypedDict):
    units: List[Unit]
    #: Generated secrets, which only this answer shows, and `URL` if the unit is published.
    outputs: Dict[str, str]
    recipe: str | None
    #: Cost and sleep in words.
    costLine: str


class _SecretRequired(TypedDict):
    name: str
    #: The hosts to which the value goes, on port 443 alone.
    hosts: List[str]
    #: What units have in place of the value.
    placeholder: str
    #: How many units bind it.
    units: int
    createdAt: str
    updatedAt: str


class Secret(_SecretRequired, total=False):
    #: Present if the secret is for these methods alone.
    methods: List[str]
    #: Present if the secret is for these paths alone.
    paths: List[str]


class SecretAnswer(TypedDict):
    secret: Secret


class SecretDeletedUnbound(TypedDict):
    id: str
    name: str


class SecretDeleted(TypedDict):
    ok: Literal[True]
    #: The units that had it. They run on without it.
    unbound: List[SecretDeletedUnbound]


class SecretList(TypedDict):
    #: By name; never a value.
    secrets: List[Secret]


class _SecretPutRequired(TypedDict):
    #: No answer shows it.
    value: str
    #: Exact names, such as `api.openai.com`.
    hosts: List[str]


class SecretPut(_SecretPutRequired, total=False):
    #: The methods of the requests that the secret is for. Default: all.
    methods: List[Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]]
    #: The paths of the requests that the secret is for, exact or with `/*` at the end. Default: all.
    paths: List[str]
    #: What units have in place of the value, for programs that check the form of a key. It stays for the life of the secret. Default: random.
    placeholder: str


class _SleepRequired(TypedDict):
    #: How long the unit may idle before it sleeps; `never` keeps it running.
    sleep: str


class Sleep(_SleepRequired, total=False):
    #: Whether to set it for every unit of its stack, which then sleep and wake together.
    stack: bool
    #: Whether to put the unit to sleep at once.
    now: bool


class SleepResult(TypedDict):
    units: List[Unit]


class Stack(TypedDict):
    id: str
    name: str
    teamId: str
    createdAt: str
    #: Oldest first.
    units: List[Unit]


class StackCreate(TypedDict):
    name: str


class StackFork(TypedDict, total=False):
    #: Name of the new stack. Default: a free name derived from the source's.
    into: str
    #: Default: the source's.
    sleep: str
    #: The labels of a copy. Default: the source's.
    metadata: Dict[str, str]
    #: How long a copy lives, from when it is there. Default: the source's, from its beginning.
    timeToLive: str
    #: What happens then. Default: the source's.
    atEnd: Literal["destroy", "sleep", "stop"]
    #: Whether to answer only once the units are ready.
    wait: bool
    #: After this time the call answers, although the unit may still be `creating`.
    waitTimeoutMs: int


class StackList(TypedDict):
    stacks: List[Stack]
    next: str | None


class SupportMessage(TypedDict):
    topic: Literal["question", "bug", "idea"]
    message: str


class SupportTicket(TypedDict):
    ok: Literal[True]
    #: The reference of this message in the reply.
    ticket: str


class _TeamEgressRequired(TypedDict):
    #: Which public hosts: `open` all, `listed` those of `allow`, `none` no host.
    mode: Literal["open", "listed", "none"]
    #: For `listed`: names such as `api.github.com`, `*.pythonhosted.org` (names below it) and `github.com:22`, ranges such as `203.0.113.0/24` and `203.0.113.7/32:5432`, and presets such as `preset:npm`. A name without a port means ports 80 and 443. Names of units, below `internal`, are refused: `siblings` decides them.
    allow: List[str]
    #: Which units of the team: `team` all, `stack` those of its stack, `none` no unit.
    siblings: Literal["team", "stack", "none"]


class TeamEgress(_TeamEgressRequired, total=False):
    """The most that a unit of the team may reach."""

    #: Ranges such as `203.0.113.0/24` or addresses that are refused, whatever else allows them. Absent: none.
    deny: List[str]


class Team(TypedDict):
    id: str
    slug: str
    name: str
    personal: bool
    plan: Literal["hobby", "pro", "team"]
    #: The region of new units.
    region: Literal["paris", "virginia", "singapore"]
    #: The currency in which pages show money; amounts in answers are always euro cents.
    currency: Literal["eur", "usd"]
    #: The caller's own.
    role: Literal["owner", "admin", "member"]
    creditBalanceCents: float
    paysAsItGoes: bool
    #: The most that a unit of the team may reach.
    egress: TeamEgress


class TeamAnswer(TypedDict):
    team: Team


class TeamChangeEgress(TypedDict, total=False):
    """The most that a unit of the team may reach. Units that may reach more are narrowed at once."""

    #: Which public hosts: `open` all, `listed` those of `allow`, `none` no host.
    mode: Literal["open", "listed", "none"]
    #: For `listed`: names such as `api.github.com`, `*.pythonhosted.org` (names below it) and `github.com:22`, ranges such as `203.0.113.0/24` and `203.0.113.7/32:5432`, and presets such as `preset:npm`. A name without a port means ports 80 and 443. Names of units, below `internal`, are refused: `siblings` decides them.
    allow: List[str]
    #: Ranges such as `203.0.113.0/24` or addresses that are refused, whatever else allows them. Absent: none.
    deny: List[str]
    #: Which units of the team: `team` all, `stack` those of its stack, `none` no unit.
    siblings: Literal["team", "stack", "none"]


class TeamChange(TypedDict, total=False):
    name: str
    region: Literal["paris", "virginia", "singapore"]
    currency: Literal["eur", "usd"]
    #: The most that a unit of the team may reach. Units that may reach more are narrowed at once.
    egress: TeamChangeEgress


class TeamChangedNarrowed(TypedDict):
    id: str
    name: str


class TeamChanged(TypedDict):
    team: Team
    #: The units whose rules of egress became narrower with this change, or that lost a secret.
    narrowed: List[TeamChangedNarrowed]


class _TeamCreateRequired(TypedDict):
    name: str


class TeamCreate(_TeamCreateRequired, total=False):
    region: Literal["paris", "virginia", "singapore"]
    currency: Literal["eur", "usd"]


class UnitDatabasePort(TypedDict):
    port: int
    protocol: Literal["http", "postgres", "mysql", "redis", "mongodb", "amqp", "bolt", "grpc"]


class _UnitEnv1Required(TypedDict):
    secret: str


class UnitEnv1(_UnitEnv1Required, total=False):
    hosts: List[str]
    #: Present if the secret is for these methods alone.
    methods: List[str]
    #: Present if the secret is for these paths alone.
    paths: List[str]


class UnitEnv2(TypedDict):
    teamSecret: str


class UnitVolume(TypedDict):
    mount: str
    gb: int


class UnitHealthcheck(TypedDict):
    cmd: List[str]
    intervalMs: int
    timeoutMs: int


class UnitLastExit(TypedDict):
    #: The exit code; 128 + n for signal n.
    code: int
    oomKilled: bool
    at: str


class UnitFile(TypedDict):
    path: str
    bytes: int


class UnitCreatedBy(TypedDict):
    """The creator; null for a unit of an older release."""

    #: The id of the key or connected agent; for a session, of the person.
    id: str
    kind: Literal["key", "oauth", "session"]
    #: At that time; for a session, the address of the person.
    name: str


class UnitMemory(TypedDict):
    #: For a sleeping unit: whether it wakes with the memory of its processes, or starts again from its disk. Null in every other state, and while this is not known yet.
    kept: bool | None
    #: Whether the memory survives the second tier of sleep and is copied by a fork. `tried`: the host attempts it. `lost`: only the disk is kept, since this host cannot keep memory or failed the last time.
    longSleep: Literal["tried", "lost"]


class UnitProgressBytes(TypedDict):
    """Of a download that has begun; null for everything else."""

    done: int
    total: int


class UnitProgress(TypedDict):
    """How far a unit in `creating` is; null in every other state."""

    #: `waiting`: other images, or units that it starts after, come first. `downloading`, `unpacking`, `building`: its image, which only the first unit waits for. `copying`: it is a fork. `preparing`: its disk and network. `starting`: its process. `checking`: until its healthcheck passes.
    stage: Literal["waiting", "downloading", "unpacking", "building", "copying", "preparing", "starting", "checking"]
    #: When this stage began.
    startedAt: str
    #: Of a download that has begun; null for everything else.
    bytes: UnitProgressBytes | None
    #: The newest lines of the build of its image, oldest first.
    log: List[str]


class UnitHost(TypedDict):
    """The host that it runs on."""

    #: Units with the same id run on the same host.
    id: str
    #: Null where the operator named none.
    region: str | None


class _UnitEgressRequired(TypedDict):
    #: Which public hosts: `open` all, `listed` those of `allow`, `none` no host.
    mode: Literal["open", "listed", "none"]
    #: For `listed`: names such as `api.github.com`, `*.pythonhosted.org` (names below it) and `github.com:22`, ranges such as `203.0.113.0/24` and `203.0.113.7/32:5432`, and presets such as `preset:npm`. A name without a port means ports 80 and 443. Names of units, below `internal`, are refused: `siblings` decides them.
    allow: List[str]
    #: Which units of the team: `team` all, `stack` those of its stack, `none` no unit.
    siblings: Literal["team", "stack", "none"]
    #: Counts the changes of the rules and of brokered secrets; 0 for a unit without any.
    version: int


class UnitEgress(_UnitEgressRequired, total=False):
    """What it may reach."""

    #: Ranges such as `203.0.113.0/24` or addresses that are refused, whatever else allows them. Absent: none.
    deny: List[str]


class Unit(TypedDict):
    id: str
    teamId: str
    stackId: str
    name: str
    image: str
    #: The arguments as declared; null for those of the image.
    cmd: List[str] | None
    #: As declared; null for that of the image.
    entrypoint: List[str] | None
    size: Literal["nano", "small", "medium", "large"]
    state: Literal["creating", "running", "stopping", "stopped", "sleeping", "starting", "destroying", "destroyed", "error"]
    #: The unit's host name on the team's private network.
    internalHost: str
    endpoints: List[Endpoint]
    ports: List[int]
    databasePorts: List[UnitDatabasePort]
    expose: int | None
    #: The environment as declared; secrets by name only.
    env: Dict[str, str | UnitEnv1 | UnitEnv2]
    volume: UnitVolume | None
    healthcheck: UnitHealthcheck | None
    createdAt: str
    #: When the current run started, or the last one if the unit does not run.
    startedAt: str | None
    sleep: str
    #: When the unit goes to sleep unless it is used before.
    sleepsAt: str | None
    lastUsedAt: str | None
    costCentsSoFar: float
    error: str | None
    #: When a unit in `error` is destroyed.
    destroysAt: str | None
    stoppedReason: Literal["idle", "cap", "credits", "user", "provider", "exited", None]
    lastExit: UnitLastExit | None
    files: List[UnitFile]
    #: The unit that it is a copy of, which may be destroyed by now.
    forkedFrom: str | None
    #: What was copied of it; null for a unit that is no copy.
    copied: Literal["memory", "disk", "config", None]
    #: The creator; null for a unit of an older release.
    createdBy: UnitCreatedBy | None
    memory: UnitMemory
    #: How far a unit in `creating` is; null in every other state.
    progress: UnitProgress | None
    #: The host that it runs on.
    host: UnitHost
    #: What it may reach.
    egress: UnitEgress
    #: Whether containers may run in it.
    nested: bool
    #: The program that its newest run was started with, such as `runsc 20260905.0` or `runc 1.1.5`. A unit keeps it until it starts again. Null before the first run.
    runtime: str | None
    #: Labels that its team gave it.
    metadata: Dict[str, str]
    #: How long it lives, as it was last set; null without an end.
    timeToLive: str | None
    #: What happens at the end of its time to live.
    atEnd: Literal["destroy", "sleep", "stop"]
    #: When its time to live has passed; null without one, and until the unit is ready.
    endsAt: str | None


class _UnitCallsCallRequired(TypedDict):
    #: As the protocol names it.
    method: str


class UnitCallsCall(_UnitCallsCallRequired, total=False):
    #: How often it was called like this.
    count: int
    #: What it started. Kept as that of exec is: cut, without passwords.
    cmd: List[str]
    #: The file that it was about.
    path: str
    #: The session's id at its vendor.
    session: str


class UnitCalls(TypedDict):
    #: In the order of their first call.
    calls: List[UnitCallsCall]


class UnitChange(TypedDict, total=False):
    #: Replaces all labels.
    metadata: Dict[str, str]
    #: How long the unit lives from now on, or from when it is ready; `never` takes its end away.
    timeToLive: str
    #: What happens then. `destroy` destroys the unit. `sleep` puts it to sleep, also in the middle of a command, and takes the time to live away: the unit wakes as any other, and then has no end until it is given one. `stop` stops it in the same way: it keeps its disk, and starts when it is told to.
    atEnd: Literal["destroy", "sleep", "stop"]


class UnitFork(TypedDict, total=False):
    #: Default: a free name derived from the source's.
    name: str
    #: Name of a stack, created if absent. Default: the source's stack.
    stack: str
    #: Variables beside the source's, or in place of those of the same name. Processes that go on in the copy keep the environment that they have.
    env: Dict[str, str]
    #: Default: the source's.
    sleep: str
    #: The labels of a copy. Default: the source's.
    metadata: Dict[str, str]
    #: How long a copy lives, from when it is there. Default: the source's, from its beginning.
    timeToLive: str
    #: What happens then. Default: the source's.
    atEnd: Literal["destroy", "sleep", "stop"]
    #: Whether to answer only once the units are ready.
    wait: bool
    #: After this time the call answers, although the unit may still be `creating`.
    waitTimeoutMs: int


class UnitList(TypedDict):
    units: List[Unit]
    next: str | None


class UnitMetricsRunCpu(TypedDict):
    #: Processor time of all its processes.
    usedMs: int
    #: How long its processes were throttled by the limit of its size.
    limitedMs: int
    limitCpus: float


class UnitMetricsRunMemory(TypedDict):
    #: Memory without the page cache.
    usedBytes: int
    #: Page cache, which the kernel frees when memory is needed.
    cacheBytes: int
    #: The highest sum of both so far. Null if the kernel does not count it.
    peakBytes: int | None
    #: The limit of the sum. In class `gvisor` it is larger than the memory of the size, because it includes the sandbox kernel.
    limitBytes: int


class UnitMetricsRunPids(TypedDict):
    #: Processes and threads; in class `gvisor` those of the sandbox kernel.
    count: int
    limit: int


class UnitMetricsRunNetwork(TypedDict):
    receivedBytes: int
    sentBytes: int


class UnitMetricsRunIo(TypedDict):
    """Bytes read from and written to disk. With cgroups version 1, writes through the page cache are not counted. Null if the host does not count it."""

    readBytes: int
    writtenBytes: int


class UnitMetricsRun(TypedDict):
    """Counted since the start of the machine. Null while there is no machine: the unit is stopped, failed, or in its second tier of sleep. In the first tier the values do not change."""

    startedAt: str | None
    cpu: UnitMetricsRunCpu
    memory: UnitMetricsRunMemory
    pids: UnitMetricsRunPids
    network: UnitMetricsRunNetwork | None
    #: Bytes read from and written to disk. With cgroups version 1, writes through the page cache are not counted. Null if the host does not count it.
    io: UnitMetricsRunIo | None


class UnitMetricsDisk(TypedDict):
    #: Includes blocks that it shares with its copies; up to half a minute old. Null while there is no disk, or if the host does not count it.
    usedBytes: int | None
    limitBytes: int


class UnitMetricsVolume(TypedDict):
    #: Includes blocks that it shares with its copies; up to half a minute old. Null while there is no disk, or if the host does not count it.
    usedBytes: int | None
    limitBytes: int


class UnitMetrics(TypedDict):
    unitId: str
    state: Literal["creating", "running", "stopping", "stopped", "sleeping", "starting", "destroying", "destroyed", "error"]
    at: str
    #: Counted since the start of the machine. Null while there is no machine: the unit is stopped, failed, or in its second tier of sleep. In the first tier the values do not change.
    run: UnitMetricsRun | None
    disk: UnitMetricsDisk
    volume: UnitMetricsVolume | None


class _UnitSecretRequired(TypedDict):
    name: str
    hosts: List[str]
    #: What the unit has in place of the value; it stays.
    placeholder: str


class UnitSecret(_UnitSecretRequired, total=False):
    #: Present if the secret is for these methods alone.
    methods: List[str]
    #: Present if the secret is for these paths alone.
    paths: List[str]


class _UnitSecretPutRequired(TypedDict):
    #: No answer shows it.
    value: str


class UnitSecretPut(_UnitSecretPutRequired, total=False):
    #: Default: those that it has.
    hosts: List[str]
    #: Null for all. Default: those that it has.
    methods: List[Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]] | None
    #: Null for all. Default: those that it has.
    paths: List[str] | None


class _UnitSpecEnv1Required(TypedDict):
    secret: str


class UnitSpecEnv1(_UnitSpecEnv1Required, total=False):
    value: str
    #: With hosts the unit gets a placeholder, and the value goes into its requests to these hosts alone.
    hosts: List[str]
    #: The methods of the requests that the secret is for. Default: all.
    methods: List[Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]]
    #: The paths of the requests that the secret is for, exact or with `/*` at the end. Default: all.
    paths: List[str]
    #: Default: random.
    placeholder: str


class UnitSpecEnv2(TypedDict):
    #: A secret of the team; the unit gets its placeholder.
    teamSecret: str


class _UnitSpecVolumeRequired(TypedDict):
    mount: str


class UnitSpecVolume(_UnitSpecVolumeRequired, total=False):
    #: The size of the volume in GB. `df` in the unit shows the whole pool of the host instead.
    gb: int


class UnitSpecFiles1(TypedDict):
    base64: str


class _UnitSpecHealthcheckRequired(TypedDict):
    cmd: List[str]


class UnitSpecHealthcheck(_UnitSpecHealthcheckRequired, total=False):
    intervalMs: int
    timeoutMs: int


class UnitSpecEgress(TypedDict, total=False):
    """What the unit may reach. Default: what the credential and its team allow."""

    #: Which public hosts: `open` all, `listed` those of `allow`, `none` no host. Default: that of the credential's bound, with its `allow`.
    mode: Literal["open", "listed", "none"]
    #: For `listed`: names such as `api.github.com`, `*.pythonhosted.org` (names below it) and `github.com:22`, ranges such as `203.0.113.0/24` and `203.0.113.7/32:5432`, and presets such as `preset:npm`. A name without a port means ports 80 and 443. Names of units, below `internal`, are refused: `siblings` decides them.
    allow: List[str]
    #: Ranges such as `203.0.113.0/24` or addresses that are refused, whatever else allows them. Absent: none. Default: that of the credential's bound.
    deny: List[str]
    #: Which units of the team: `team` all, `stack` those of its stack, `none` no unit. Default: that of the credential's bound.
    siblings: Literal["team", "stack", "none"]


class _UnitSpecRequired(TypedDict):
    name: str
    image: str


class UnitSpec(_UnitSpecRequired, total=False):
    cmd: List[str]
    entrypoint: List[str]
    env: Dict[str, str | UnitSpecEnv1 | UnitSpecEnv2]
    ports: List[int]
    size: Literal["nano", "small", "medium", "large"]
    volume: UnitSpecVolume
    files: Dict[str, str | UnitSpecFiles1]
    healthcheck: UnitSpecHealthcheck
    sleep: str
    expose: int
    #: Whether containers may run in the unit, with docker, podman or buildah. Only in the isolation class gvisor, and only for credentials whose policy has `allowNested`.
    nested: bool
    #: What the unit may reach. Default: what the credential and its team allow.
    egress: UnitSpecEgress
    #: Labels of yours, by which lists can be filtered.
    metadata: Dict[str, str]
    #: How long the unit lives once it is ready, however much it is used. A number with `s`, `m`, `h` or `d`. Default: `never`, without an end.
    timeToLive: str
    #: What happens when that time has passed. `destroy` destroys the unit. `sleep` puts it to sleep, also in the middle of a command, and takes the time to live away: the unit wakes as any other, and then has no end until it is given one. `stop` stops it in the same way: it keeps its disk, and starts when it is told to. Default: `destroy`.
    atEnd: Literal["destroy", "sleep", "stop"]


class UnitSummaryByState(TypedDict, total=False):
    creating: int
    running: int
    stopping: int
    stopped: int
    sleeping: int
    starting: int
    destroying: int
    destroyed: int
    error: int


class UnitSummary(TypedDict):
    byState: UnitSummaryByState
    #: What these units cost an hour at this moment, with their volumes.
    centsPerHour: float
    total: int


class UsageDayUnitSeconds(TypedDict):
    #: Seconds that units of this size ran.
    nano: float
    #: Seconds that units of this size ran.
    small: float
    #: Seconds that units of this size ran.
    medium: float
    #: Seconds that units of this size ran.
    large: float


class UsageDayPart(TypedDict):
    id: str
    name: str
    costCents: float


class _UsageDayRequired(TypedDict):
    date: str
    #: The cost of machines and volumes.
    costCents: float
    unitSeconds: UsageDayUnitSeconds


class UsageDay(_UsageDayRequired, total=False):
    #: With `by`: what the ten with the greatest cost of all these days cost on this one, greatest of all first; those without cost are left out. An agent is a key, a connected agent, or a person.
    parts: List[UsageDayPart]
    #: With `by`: what all others cost on this day.
    restCents: float


class Usage(TypedDict):
    #: Days in UTC, today last, including days without usage.
    days: List[UsageDay]
    totalCents: float


class User(TypedDict):
    id: str
    email: str
    name: str
    emailVerified: bool
    #: Whether this person operates the service.
    admin: bool
