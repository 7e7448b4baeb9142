// Written by `npm run gen` from openapi.json and the recipes: do not edit.

/** Every code that an error of the service can have. */
export const errorCodes = [
  'validation',
  'unauthorized',
  'forbidden',
  'policy_violation',
  'quota_exceeded',
  'payment_required',
  'not_found',
  'invalid_state',
  'conflict',
  'method_not_allowed',
  'request_timeout',
  'payload_too_large',
  'unsupported_media_type',
  'misdirected_request',
  'upgrade_required',
  'headers_too_large',
  'provider_error',
  'unavailable',
  'internal',
] as const
export type ErrorCode = (typeof errorCodes)[number]

export type Agent = {
  id: string
  kind: 'key' | 'oauth'
  name: string
  /** The first characters of the key, to recognize it by. */
  prefix: string | null
  policy: Policy
  /** The connected OAuth client. */
  client: {
    id: string
    name: string | null
    uri: string | null
    icon: string | null
  } | null
  /** The agent that used the credential last, as it names itself. Updated once a minute; null for an unknown agent. */
  agent: {
    name: string
    title: string
    version: string | null
    userAgent: string | null
  } | null
  createdBy: {
    name: string | null
    email: string | null
  } | null
  createdAt: string
  connectedAt: string | null
  /** Updated once a minute. */
  lastUsedAt: string | null
  /** What it has spent since midnight in UTC, against `dailySpendCapCents`. */
  spentTodayCents: number
  /** How many units it runs, against `maxConcurrentUnits`. */
  liveUnits: number
  revokedAt: string | null
}

export type AgentChange = {
  name?: string | undefined
  /** Omitted fields stay unchanged. */
  policy?: {
    maxConcurrentUnits?: number | undefined
    dailySpendCapCents?: number | undefined
    allowedSizes?: ('nano' | 'small' | 'medium' | 'large')[] | undefined
    allowedRegistries?: string[] | undefined
    maxSleep?: string | undefined
    expiresAt?: string | null | undefined
    egress?: EgressBound | undefined
    /** Calls a minute, of all kinds, those that make units, and commands. One that is left out is the rate of the service; `GET /v1/quota` has all of them. */
    rates?: {
      requests?: number | undefined
      creations?: number | undefined
      execs?: number | undefined
    } | undefined
    /** Whether containers may run in its units: `nested` in their spec. */
    allowNested?: boolean | undefined
    /** The secrets of the team that its units may bind. `*` stands for all, and for the right to put and delete them. Only an owner or admin may give it. */
    allowedSecrets?: string[] | undefined
  } | undefined
}

export type AgentChanged = {
  agent: Agent
  /** The units whose rules of egress became narrower with this change, or that lost a secret. */
  narrowed: {
    id: string
    name: string
  }[]
}

export type AgentDryRun = {
  /** The running units that the change would stop at once, oldest first. They could run again once the policy allows it. */
  stops: {
    id: string
    name: string
  }[]
  /** The units whose rules of egress the change would narrow, or whose secrets it would take, oldest first. They run on. */
  narrows: {
    id: string
    name: string
  }[]
}

export type AgentDryRunAsked = {
  /** The change, as PATCH takes it. Omitted fields stay unchanged. */
  policy: {
    maxConcurrentUnits?: number | undefined
    dailySpendCapCents?: number | undefined
    allowedSizes?: ('nano' | 'small' | 'medium' | 'large')[] | undefined
    allowedRegistries?: string[] | undefined
    maxSleep?: string | undefined
    expiresAt?: string | null | undefined
    egress?: EgressBound | undefined
    /** Calls a minute, of all kinds, those that make units, and commands. One that is left out is the rate of the service; `GET /v1/quota` has all of them. */
    rates?: {
      requests?: number | undefined
      creations?: number | undefined
      execs?: number | undefined
    } | undefined
    /** Whether containers may run in its units: `nested` in their spec. */
    allowNested?: boolean | undefined
    /** The secrets of the team that its units may bind. `*` stands for all, and for the right to put and delete them. Only an owner or admin may give it. */
    allowedSecrets?: string[] | undefined
  }
}

export type AgentList = {
  agents: Agent[]
  /** Seats in use, and the seats of the plan. */
  seats: {
    used: number
    max: number
  }
}

export type AgentRevoked = {
  ok: true
}

export type ArchiveWritten = {
  path: string
  /** Present if `path` is the base64 of its bytes, as of one that is not UTF-8. */
  pathEncoding?: 'base64' | undefined
  /** The size of the archive. */
  bytes: number
}

export type AuditEvent = {
  id: string
  /** When the call arrived. */
  at: string
  /** The credential of the call, with its name at that time. */
  credential: {
    id: string
    kind: 'key' | 'oauth' | 'session'
    name: string
  }
  /** The person behind the credential. */
  userId: string | null
  action: string
  /** The id of the unit, stack, key or other object that the call was about. */
  target: string | null
  /** The name of that unit, stack or key of the team, also if it is gone; null for anything else. */
  targetName: string | null
  /** The input of the call: contents by size, environment variables by name, passwords masked. */
  input: { [name: string]: unknown } | null
  /** The status of the answer; null if the service ended before it could answer. */
  status: number | null
  errorCode: string | null
  durationMs: number | null
  costDeltaCents: number
  via: 'api' | 'dashboard' | 'mcp' | 'e2b'
  agentName: string | null
  agentVersion: string | null
  userAgent: string | null
  requestId: string
}

export type AuditList = {
  events: AuditEvent[]
  next: string | null
}

export type CodeContext = {
  id: string
  unitId: string
  language: 'python' | 'javascript' | 'typescript' | 'bash' | 'r'
  cwd: string
  /** `lost`: the unit was started again without its memory. A restart begins it anew. */
  state: 'starting' | 'idle' | 'busy' | 'lost'
  createdAt: string
}

export type CodeContextCreate = {
  language?: 'python' | 'javascript' | 'typescript' | 'bash' | 'r' | undefined
  /** Default: `/home/user`. */
  cwd?: string | undefined
  /** Added to the unit's environment, and overrides it. */
  env?: { [name: string]: string } | undefined
}

export type CodeContextList = {
  /** Oldest first. */
  contexts: CodeContext[]
}

export type CodeFailure = {
  /** Such as `ZeroDivisionError`. `KernelDied`: the context was begun anew, without its variables. */
  name: string
  value: string
  traceback: string[]
} | null

export type CodeResult = {
  context: string
  language: 'python' | 'javascript' | 'typescript' | 'bash' | 'r'
  /** How often the context has run code; null if it was begun anew. */
  executionCount: number | null
  timedOut: boolean
  /** Whether there was more output, or were more results, than an answer has. */
  truncated: boolean
  stdout: string
  stderr: string
  /** In the order in which they came. */
  results: CodeValue[]
  error: CodeFailure
}

export type CodeRun = {
  code: string
  /** Default: that of the context; without one, `python`. Each language has a context of its own. */
  language?: 'python' | 'javascript' | 'typescript' | 'bash' | 'r' | undefined
  /** The id of a context. Default: one that the first run in the language makes. */
  context?: string | undefined
  /** For this run alone; in Python only. */
  env?: { [name: string]: string } | undefined
  /** The code is interrupted then. A context that does not stop is begun anew. */
  timeoutMs?: number | undefined
}

export type CodeValue = {
  /** The same value in several forms, by MIME type: text as it is, images in base64, JSON as data. HTML is what the code made: show it in a frame without rights only. */
  data: { [name: string]: unknown }
  /** Whether it is the value of the last line, and not shown in between. */
  main: boolean
}

export type CreateFromRecipe = {
  /** The name of a recipe, as in `GET /v1/recipes`. */
  recipe: string
  /** The parameters of the recipe, as in `GET /v1/recipes/{name}`; null means the default. */
  params?: { [name: string]: unknown } | undefined
  /** The name of the recipe's main unit, and the prefix of its other units' names. Default: the recipe's name. */
  name?: string | undefined
  /** Name of a stack; created if absent. */
  stack?: string | undefined
  /** Publish the recipe's default port at once. The answer has the URL in `outputs.URL`. */
  expose?: 'public' | 'private' | undefined
  /** The idle window of every unit that the recipe creates. */
  sleep?: string | undefined
  /** What every unit that the recipe creates may reach. Default: what the credential and its team allow. */
  egress?: {
    /** Which public hosts: `open` all, `listed` those of `allow`, `none` no host. Default: that of the credential's bound, with its `allow`. */
    mode?: 'open' | 'listed' | 'none' | undefined
    /** For `listed`: names such as `api.github.com`, `*.pythonhosted.org` (names below it) and `github.com:22`, ranges such as `203.0.113.0/24` and `203.0.113.7/32:5432`, and presets such as `preset:npm`. A name without a port means ports 80 and 443. Names of units, below `internal`, are refused: `siblings` decides them. */
    allow?: string[] | undefined
    /** Ranges such as `203.0.113.0/24` or addresses that are refused, whatever else allows them. Absent: none. Default: that of the credential's bound. */
    deny?: string[] | undefined
    /** Which units of the team: `team` all, `stack` those of its stack, `none` no unit. Default: that of the credential's bound. */
    siblings?: 'team' | 'stack' | 'none' | undefined
  } | undefined
  /** Labels of yours, for every unit that the recipe creates. */
  metadata?: { [name: string]: string } | undefined
  /** How long the unit lives once it is ready, however much it is used. A number with `s`, `m`, `h` or `d`. Default: `never`, without an end. */
  timeToLive?: string | undefined
  /** What happens when that time has passed. `destroy` destroys the unit. `sleep` puts it to sleep, also in the middle of a command, and takes the time to live away: the unit wakes as any other, and then has no end until it is given one. `stop` stops it in the same way: it keeps its disk, and starts when it is told to. Default: `destroy`. */
  atEnd?: 'destroy' | 'sleep' | 'stop' | undefined
  /** Whether to answer only once the units are ready. */
  wait?: boolean | undefined
  /** After this time the call answers, although the unit may still be `creating`. */
  waitTimeoutMs?: number | undefined
}

export type CreateFromSpec = {
  spec: UnitSpec
  /** Name of a stack; created if absent. */
  stack?: string | undefined
  /** Publish a port at once: `spec.expose`, or the only one of `spec.ports`. The answer has the URL in `outputs.URL`. */
  expose?: 'public' | 'private' | undefined
  /** Whether to answer only once the units are ready. */
  wait?: boolean | undefined
  /** After this time the call answers, although the unit may still be `creating`. */
  waitTimeoutMs?: number | undefined
}

export type DirectoryEntry = {
  /** Of an entry further down, its path from the listed folder. */
  name: string
  /** Present if the name is not UTF-8. `name` is then the base64 of its bytes; give paths so with `pathEncoding=base64`. */
  encoding?: 'base64' | undefined
  type: 'file' | 'directory' | 'link' | 'other'
  /** In four octal digits, such as "0755". */
  mode: string
  bytes: number
  modifiedAt: string
  /** The number of its owner. */
  uid: number
  /** The number of its group. */
  gid: number
  /** The owner's name in the unit; null if it has none. */
  owner: string | null
  /** The group's name in the unit; null if it has none. */
  group: string | null
}

export type DirectoryList = {
  path: string
  /** Present if `path` is the base64 of its bytes, as of one that is not UTF-8. */
  pathEncoding?: 'base64' | undefined
  /** Sorted by name. */
  entries: DirectoryEntry[]
  /** Send it as `after` for the entries after these; null on the last page. */
  next: string | null
  /** The directory has more than 20000 entries, and only that many can be listed. */
  truncated: boolean
}

export type DirectoryMade = {
  path: string
  /** Present if `path` is the base64 of its bytes, as of one that is not UTF-8. */
  pathEncoding?: 'base64' | undefined
  /** Whether it was not there before. */
  made: boolean
}

export type DirectoryMake = {
  path: string
  /** Present if `path` is the base64 of its bytes, as of one that is not UTF-8. */
  pathEncoding?: 'base64' | undefined
  /** The mode of the file, in octal: "0755". Without it an existing file keeps its mode, and a new one gets 0644. An existing file keeps its owner, unless `user` names another. */
  mode?: string | undefined
  /** Its owner, and that of folders made above it: a name or a number of the unit's `/etc/passwd`. Without it an existing file keeps its owner, and a new one is of root. */
  user?: string | undefined
}

export type Done = {
  ok: true
}

export type EgressAsked = {
  /** Which public hosts: `open` all, `listed` those of `allow`, `none` no host. Default: that of the credential's bound, with its `allow`. */
  mode?: 'open' | 'listed' | 'none' | undefined
  /** For `listed`: names such as `api.github.com`, `*.pythonhosted.org` (names below it) and `github.com:22`, ranges such as `203.0.113.0/24` and `203.0.113.7/32:5432`, and presets such as `preset:npm`. A name without a port means ports 80 and 443. Names of units, below `internal`, are refused: `siblings` decides them. */
  allow?: string[] | undefined
  /** Ranges such as `203.0.113.0/24` or addresses that are refused, whatever else allows them. Absent: none. Default: that of the credential's bound. */
  deny?: string[] | undefined
  /** Which units of the team: `team` all, `stack` those of its stack, `none` no unit. Default: that of the credential's bound. */
  siblings?: 'team' | 'stack' | 'none' | undefined
}

export type EgressBound = {
  /** Which public hosts: `open` all, `listed` those of `allow`, `none` no host. */
  mode?: 'open' | 'listed' | 'none' | undefined
  /** For `listed`: names such as `api.github.com`, `*.pythonhosted.org` (names below it) and `github.com:22`, ranges such as `203.0.113.0/24` and `203.0.113.7/32:5432`, and presets such as `preset:npm`. A name without a port means ports 80 and 443. Names of units, below `internal`, are refused: `siblings` decides them. */
  allow?: string[] | undefined
  /** Ranges such as `203.0.113.0/24` or addresses that are refused, whatever else allows them. Absent: none. */
  deny?: string[] | undefined
  /** Which units of the team: `team` all, `stack` those of its stack, `none` no unit. */
  siblings?: 'team' | 'stack' | 'none' | undefined
}

export type EgressCheck = {
  /** A host name, an IPv4 address, or the internal host of a unit. */
  host: string
  port: number
}

export type EgressDecision = {
  decision: 'allowed' | 'refused'
  /** The entry that allows it; null for a refusal, and where no entry is needed. */
  rule: string | null
  /** Why, as a sentence; for a refusal also what to do. */
  reason: string
}

export type EgressInForce = {
  /** Which public hosts: `open` all, `listed` those of `allow`, `none` no host. */
  mode: 'open' | 'listed' | 'none'
  /** For `listed`: names such as `api.github.com`, `*.pythonhosted.org` (names below it) and `github.com:22`, ranges such as `203.0.113.0/24` and `203.0.113.7/32:5432`, and presets such as `preset:npm`. A name without a port means ports 80 and 443. Names of units, below `internal`, are refused: `siblings` decides them. */
  allow: string[]
  /** Ranges such as `203.0.113.0/24` or addresses that are refused, whatever else allows them. Absent: none. */
  deny?: string[] | undefined
  /** Which units of the team: `team` all, `stack` those of its stack, `none` no unit. */
  siblings: 'team' | 'stack' | 'none'
  /** Counts the changes of the rules and of brokered secrets; 0 for a unit without any. */
  version: number
  /** Since when this version is in force; null until it is. */
  appliedAt: string | null
}

export type EgressLogLine = {
  /** The minute that the line sums up. */
  at: string
  /** In lower-case ASCII. Null where the connection named none, or nothing that can be a public host. Null also in the line for all beyond those that a minute has lines for. And null for a minute in which the rules were not enforced: nothing listed was reached then. */
  host: string | null
  /** Where the newest of these connections led. */
  address: string | null
  /** Null for a name that was refused when it was looked up. */
  port: number | null
  /** `dns`: its look-ups, of names that are refused or are listed with another port than 80 and 443. */
  protocol: 'http' | 'tls' | 'dns'
  decision: 'allowed' | 'refused'
  /** The entry that allows it. */
  rule: string | null
  /** Why, as a sentence. */
  reason: string
  /** What to add to `allow` so that it is allowed; null where no entry would do that. */
  entry: string | null
  /** The name of the secret that was put into its requests. */
  secret: string | null
  /** From the host. Counted when a connection ends, in the minute in which it began. */
  bytesIn: number
  /** To the host, likewise. */
  bytesOut: number
  /** How many connections, requests on port 80, or look-ups. Zero in the line of a minute in which the rules were not enforced. */
  count: number
}

export type EgressLogPage = {
  lines: EgressLogLine[]
  /** Send it as `since` to get the lines after these. A line of before comes again if it has grown. */
  next: string | null
}

export type EgressSet = {
  /** Which public hosts: `open` all, `listed` those of `allow`, `none` no host. */
  mode: 'open' | 'listed' | 'none'
  /** For `listed`: names such as `api.github.com`, `*.pythonhosted.org` (names below it) and `github.com:22`, ranges such as `203.0.113.0/24` and `203.0.113.7/32:5432`, and presets such as `preset:npm`. A name without a port means ports 80 and 443. Names of units, below `internal`, are refused: `siblings` decides them. */
  allow: string[]
  /** Ranges such as `203.0.113.0/24` or addresses that are refused, whatever else allows them. Absent: none. */
  deny?: string[] | undefined
  /** Which units of the team: `team` all, `stack` those of its stack, `none` no unit. */
  siblings: 'team' | 'stack' | 'none'
  /** Counts the changes of the rules and of brokered secrets; 0 for a unit without any. */
  version: number
  /** Since when this version is in force; null until it is. */
  appliedAt: string | null
  /** The rules before this call. */
  previous: {
    /** Which public hosts: `open` all, `listed` those of `allow`, `none` no host. */
    mode: 'open' | 'listed' | 'none'
    /** For `listed`: names such as `api.github.com`, `*.pythonhosted.org` (names below it) and `github.com:22`, ranges such as `203.0.113.0/24` and `203.0.113.7/32:5432`, and presets such as `preset:npm`. A name without a port means ports 80 and 443. Names of units, below `internal`, are refused: `siblings` decides them. */
    allow: string[]
    /** Ranges such as `203.0.113.0/24` or addresses that are refused, whatever else allows them. Absent: none. */
    deny?: string[] | undefined
    /** Which units of the team: `team` all, `stack` those of its stack, `none` no unit. */
    siblings: 'team' | 'stack' | 'none'
  }
}

export type Endpoint = {
  id: string
  port: number
  protocol: 'http' | 'postgres' | 'mysql' | 'redis' | 'mongodb' | 'amqp' | 'bolt' | 'grpc'
  mode: 'public' | 'private'
  /** For a TCP endpoint: its address without the password; for a database from a recipe with user and database name. */
  url: string
  /** A port for clients that cannot send a server name (SNI): use it with the same host, with TLS. */
  portWithoutSni?: number | undefined
}

export type Exec = {
  cmd: string[]
  /** Default: the working directory of the unit's own process. */
  cwd?: string | undefined
  /** Added to the unit's environment, and overrides it. */
  env?: { [name: string]: string } | undefined
  timeoutMs?: number | undefined
  stdin?: string | undefined
  /** Who runs it: a name or a number of the unit's `/etc/passwd`, whose home is then `HOME`. Default: the user of the unit's own process. */
  user?: string | undefined
  /** To have `stdout` and `stderr` of the answer in base64, byte for byte. A stream has base64 where it needs it. */
  encoding?: 'base64' | undefined
}

export type ExecResult = {
  exitCode: number
  /** As UTF-8; invalid bytes become U+FFFD. */
  stdout: string
  stderr: string
  timedOut: boolean
  /** Whether stdout or stderr was longer than 1 MB and was cut. */
  truncated: boolean
  /** Present if both are in base64, as the call asked. */
  encoding?: 'base64' | undefined
}

export type Expose = {
  /** The port in the unit that visits are sent to. If the unit declares ports, it must be one of them. */
  port: number
  /** Default: the current mode, or `private` at the first publishing. */
  mode?: 'public' | 'private' | undefined
  /** Whether to make a new address. The old one stops working within a second. */
  rotate?: boolean | undefined
  /** Default: the protocol that the unit declares for this port, else the current one, else `http`. */
  protocol?: 'http' | 'postgres' | 'mysql' | 'redis' | 'mongodb' | 'amqp' | 'bolt' | 'grpc' | undefined
}

export type Exposed = {
  url: string
  mode: 'public' | 'private'
  port: number
  /** A side effect of the call, such as a restart of the unit. */
  warning?: string | undefined
}

export type FileDeleted = {
  path: string
  /** Present if `path` is the base64 of its bytes, as of one that is not UTF-8. */
  pathEncoding?: 'base64' | undefined
}

export type FileFacts = {
  path: string
  /** Present if `path` is the base64 of its bytes, as of one that is not UTF-8. */
  pathEncoding?: 'base64' | undefined
  type: 'file' | 'directory' | 'link' | 'other'
  /** In four octal digits, such as "0755". */
  mode: string
  bytes: number
  modifiedAt: string
  /** The number of its owner. */
  uid: number
  /** The number of its group. */
  gid: number
  /** The owner's name in the unit; null if it has none. */
  owner: string | null
  /** The group's name in the unit; null if it has none. */
  group: string | null
  /** Where a link leads, as it is written in it, with U+FFFD for what is not UTF-8; null for others. */
  target: string | null
}

export type FileMove = {
  path: string
  /** Present if `path` is the base64 of its bytes, as of one that is not UTF-8. */
  pathEncoding?: 'base64' | undefined
  /** The new path, in base64 like `path` with `pathEncoding`. */
  to: string
  /** Its owner, and that of folders made above it: a name or a number of the unit's `/etc/passwd`. Without it an existing file keeps its owner, and a new one is of root. */
  user?: string | undefined
}

export type FileMoved = {
  path: string
  /** Present if `path` is the base64 of its bytes, as of one that is not UTF-8. */
  pathEncoding?: 'base64' | undefined
}

export type FileRead = {
  path: string
  /** Present if `path` is the base64 of its bytes, as of one that is not UTF-8. */
  pathEncoding?: 'base64' | undefined
  contentBase64: string
}

export type FileWrite = {
  path: string
  /** Present if `path` is the base64 of its bytes, as of one that is not UTF-8. */
  pathEncoding?: 'base64' | undefined
  contentBase64: string
  /** The mode of the file, in octal: "0755". Without it an existing file keeps its mode, and a new one gets 0644. An existing file keeps its owner, unless `user` names another. */
  mode?: string | undefined
  /** Its owner, and that of folders made above it: a name or a number of the unit's `/etc/passwd`. Without it an existing file keeps its owner, and a new one is of root. */
  user?: string | undefined
}

export type FileWritten = {
  path: string
  /** Present if `path` is the base64 of its bytes, as of one that is not UTF-8. */
  pathEncoding?: 'base64' | undefined
  bytes: number
  sha256: string
  /** Whether the unit computed the same SHA-256 from its disk. */
  verified: boolean
  /** Present if the path is a boot file, which is written again at each start. */
  warning?: string | undefined
}

export type ForkResult = {
  units: Unit[]
  /** What was copied of each unit, by the name of the unit. */
  copied: { [name: string]: 'memory' | 'disk' | 'config' }
  outputs: { [name: string]: string }
  /** Name of the stack of the copies. */
  stack: string
  /** Units that were not copied, as `NAME: REASON`. */
  skipped: string[]
  /** Cost and sleep in words. */
  costLine: string
}

export type HostedAnswer = {
  environment: HostedEnvironment
  /** Those that changed last, newest first; at most 100. */
  sessions: HostedSession[]
}

export type HostedChange = {
  /** Off: no work is asked for, and what is under way goes back to the queue. */
  on?: boolean | undefined
  /** The environment's credential, from the vendor's console. It is sealed, and no answer shows it. */
  environmentKey?: string | undefined
  /** The image of the units. */
  image?: string | undefined
  /** Their size. */
  size?: 'nano' | 'small' | 'medium' | 'large' | undefined
  /** What they may reach. */
  egress?: {
    /** Which public hosts: `open` all, `listed` those of `allow`, `none` no host. Default: that of the credential's bound, with its `allow`. */
    mode?: 'open' | 'listed' | 'none' | undefined
    /** For `listed`: names such as `api.github.com`, `*.pythonhosted.org` (names below it) and `github.com:22`, ranges such as `203.0.113.0/24` and `203.0.113.7/32:5432`, and presets such as `preset:npm`. A name without a port means ports 80 and 443. Names of units, below `internal`, are refused: `siblings` decides them. */
    allow?: string[] | undefined
    /** Ranges such as `203.0.113.0/24` or addresses that are refused, whatever else allows them. Absent: none. Default: that of the credential's bound. */
    deny?: string[] | undefined
    /** Which units of the team: `team` all, `stack` those of its stack, `none` no unit. Default: that of the credential's bound. */
    siblings?: 'team' | 'stack' | 'none' | undefined
  } | undefined
  /** How long one may go unused before it sleeps. */
  sleep?: string | undefined
  /** How long one lives at most. */
  timeToLive?: string | undefined
  /** A unit that was prepared: those of sessions are copies of it, in place of image, size and rules. */
  copyOf?: string | null | undefined
  /** How many sessions work at one time; the work of others stays queued at the vendor. */
  atOnce?: number | undefined
}

export type HostedChanged = {
  environment: HostedEnvironment
}

export type HostedCreate = {
  /** Whose hosted agents: `claude`. */
  vendor?: 'claude' | undefined
  /** The id of the self-hosted environment, from the vendor’s console. */
  environment: string
  /** The environment's credential, from the vendor's console. It is sealed, and no answer shows it. */
  environmentKey: string
  /** Of the key that is made for it: what its sessions may run, reach and spend together. */
  policy?: {
    maxConcurrentUnits?: number | undefined
    dailySpendCapCents?: number | undefined
    allowedSizes?: ('nano' | 'small' | 'medium' | 'large')[] | undefined
    allowedRegistries?: string[] | undefined
    maxSleep?: string | undefined
    expiresAt?: string | null | undefined
    egress?: EgressBound | undefined
    /** The secrets of the team that its units may bind. `*` stands for all, and for the right to put and delete them. Only an owner or admin may give it. */
    allowedSecrets?: string[] | undefined
    /** Whether containers may run in its units: `nested` in their spec. */
    allowNested?: boolean | undefined
    /** Calls a minute, of all kinds, those that make units, and commands. One that is left out is the rate of the service; `GET /v1/quota` has all of them. */
    rates?: {
      requests?: number | undefined
      creations?: number | undefined
      execs?: number | undefined
    } | undefined
  } | undefined
  /** The image of the units. */
  image?: string | undefined
  /** Their size. */
  size?: 'nano' | 'small' | 'medium' | 'large' | undefined
  egress?: EgressAsked | undefined
  /** How long one may go unused before it sleeps. */
  sleep?: string | undefined
  /** How long one lives at most. */
  timeToLive?: string | undefined
  /** A unit that was prepared: those of sessions are copies of it, in place of image, size and rules. */
  copyOf?: string | null | undefined
  /** How many sessions work at one time; the work of others stays queued at the vendor. */
  atOnce?: number | undefined
}

export type HostedDeleted = {
  ok: true
  /** The units of its sessions, which are destroyed. */
  destroyed: string[]
}

export type HostedEnvironment = {
  id: string
  vendor: 'claude'
  /** The vendor's id of it. */
  environment: string
  on: boolean
  /** `waiting`: for sessions. `full`: there is no room for another unit. `failing`: the vendor does not answer as it should. `refused`: it refuses the credential, or this service the key. */
  state: 'off' | 'starting' | 'waiting' | 'full' | 'failing' | 'refused'
  /** The last error, as a sentence, until it is over; or what was left for others. */
  note: string | null
  notedAt: string | null
  /** The key whose policy bounds its sessions; revoked with the environment. */
  key: {
    id: string
    name: string
  }
  /** The image of the units. */
  image: string
  /** Their size. */
  size: 'nano' | 'small' | 'medium' | 'large'
  /** What they may reach. */
  egress: {
    /** Which public hosts: `open` all, `listed` those of `allow`, `none` no host. Default: that of the credential's bound, with its `allow`. */
    mode?: 'open' | 'listed' | 'none' | undefined
    /** For `listed`: names such as `api.github.com`, `*.pythonhosted.org` (names below it) and `github.com:22`, ranges such as `203.0.113.0/24` and `203.0.113.7/32:5432`, and presets such as `preset:npm`. A name without a port means ports 80 and 443. Names of units, below `internal`, are refused: `siblings` decides them. */
    allow?: string[] | undefined
    /** Ranges such as `203.0.113.0/24` or addresses that are refused, whatever else allows them. Absent: none. Default: that of the credential's bound. */
    deny?: string[] | undefined
    /** Which units of the team: `team` all, `stack` those of its stack, `none` no unit. Default: that of the credential's bound. */
    siblings?: 'team' | 'stack' | 'none' | undefined
  }
  /** How long one may go unused before it sleeps. */
  sleep: string
  /** How long one lives at most. */
  timeToLive: string
  /** A unit that was prepared: those of sessions are copies of it, in place of image, size and rules. */
  copyOf: string | null
  /** How many sessions work at one time; the work of others stays queued at the vendor. */
  atOnce: number
  /** How many sessions work now. */
  working: number
  createdAt: string
}

export type HostedList = {
  environments: HostedEnvironment[]
}

export type HostedSession = {
  /** The vendor's id of it. */
  id: string
  /** `working`: a turn is under way. `waiting`: for the next one. `refused`: it cannot begin. */
  state: 'working' | 'waiting' | 'refused' | 'ended'
  /** Why it was refused, or what it works without. */
  note: string | null
  /** How often its work has begun. */
  turns: number
  unit: {
    id: string
    name: string
    state: string
  } | null
  /** What its units have cost. */
  costCents: number
  beganAt: string
  changedAt: string
}

export type Invitation = {
  teamId: string
  teamName: string
  email: string
  role: 'owner' | 'admin' | 'member'
  inviterName: string | null
  expiresAt: string
  expired: boolean
}

export type Invite = {
  id: string
  email: string
  role: 'owner' | 'admin' | 'member'
  /** The id of the person who sent it. */
  invitedBy: string | null
  expiresAt: string
  createdAt: string
}

export type InviteCreate = {
  email: string
  role?: 'admin' | 'member' | undefined
}

export type InviteCreated = {
  invite: Invite
}

export type KeyCreate = {
  name: string
  policy?: {
    maxConcurrentUnits?: number | undefined
    dailySpendCapCents?: number | undefined
    allowedSizes?: ('nano' | 'small' | 'medium' | 'large')[] | undefined
    allowedRegistries?: string[] | undefined
    maxSleep?: string | undefined
    expiresAt?: string | null | undefined
    egress?: EgressBound | undefined
    /** The secrets of the team that its units may bind. `*` stands for all, and for the right to put and delete them. Only an owner or admin may give it. */
    allowedSecrets?: string[] | undefined
    /** Whether containers may run in its units: `nested` in their spec. */
    allowNested?: boolean | undefined
    /** Calls a minute, of all kinds, those that make units, and commands. One that is left out is the rate of the service; `GET /v1/quota` has all of them. */
    rates?: {
      requests?: number | undefined
      creations?: number | undefined
      execs?: number | undefined
    } | undefined
  } | undefined
}

export type KeyCreated = {
  key: Agent
  /** The key itself. Only this answer shows it. */
  secret: string
}

export type KeyList = {
  keys: Agent[]
}

export type LogLine = {
  at: string
  stream: 'stdout' | 'stderr'
  text: string
  /** The line is longer than 256 KB and continues in the next line of the same stream. */
  continues?: true | undefined
}

export type LogPage = {
  lines: LogLine[]
  /** Send it as `since` to get the lines after these. */
  next: string | null
}

export type Me = {
  user: User
  teams: Team[]
  /** The team that calls without `x-berth-team` act in. */
  currentTeamId: string
  regions: Region[]
  freeCreditsOnVerifyCents: number
  apiUrl: string
  support: MeSupport
  /** Whether credits can be bought. */
  payments: boolean
  /** The longest idle window that a unit of the current team may have. */
  maxSleep: string
}

export type MeChange = {
  name: string
}

export type MeChanged = {
  id: string
  name: string
}

export type Member = {
  userId: string
  name: string
  email: string
  role: 'owner' | 'admin' | 'member'
  joinedAt: string
}

export type MemberList = {
  /** In the order in which they joined. */
  members: Member[]
  /** Open and expired invitations, newest first. */
  invites: Invite[]
}

export type MemberRemoved = {
  ok: true
  /** Valid keys that the removed member created. They stay with the team: revoke those that this person must not use. */
  keysToReview: {
    id: string
    name: string
    prefix: string
  }[]
}

export type MeSupport = {
  /** Whether `POST /v1/support` is mailed. Without a mail server it stays a file on the server. */
  form: boolean
  /** The address of support, if the operator has set one. */
  email: string | null
}

export type MetricsHistory = {
  unitId: string
  range: 'day' | 'month'
  /** The beginning of the first step. */
  from: string
  until: string
  stepSeconds: number
  limitCpus: number
  /** Oldest first. A step in which the unit slept or was stopped has no point. */
  points: {
    /** The beginning of the step. */
    at: string
    /** Processor time of all its processes in this step. */
    cpuMs: number
    /** The most of its samples, one a minute, without the page cache. */
    memoryBytes: number
    receivedBytes: number
    sentBytes: number
  }[]
  /** Each time a sleep grew so long that the memory of the unit was written to disk, oldest first. The 200 newest. Empty in a class that keeps no memory. */
  checkpoints: {
    at: string
    /** False: the checkpoint failed, so the next start was to boot from the disk. */
    kept: boolean
  }[]
}

export type Payment = {
  id: string
  /** `open`: not paid yet. `paid`: the credits were added. */
  state: 'created' | 'open' | 'paid' | 'expired' | 'failed'
  /** Euro cents. */
  amountCents: number
  /** The URL at which a browser pays; null once the payment is closed. */
  checkoutUrl: string | null
  /** The id of the person who requested it. */
  createdBy: string
  createdAt: string
  /** When it was paid, expired or failed. */
  closedAt: string | null
}

export type PaymentAnswer = {
  payment: Payment
}

export type PaymentCreate = {
  /** The amount in euro cents; the team gets the same amount in credits. */
  amountCents: number
}

export type PaymentEventAnswer = {
  received: true
}

export type PaymentList = {
  /** Newest first, at most 100. */
  payments: Payment[]
}

export type PidSignalled = {
  pid: number
}

export type Policy = {
  maxConcurrentUnits?: number | undefined
  dailySpendCapCents?: number | undefined
  allowedSizes?: ('nano' | 'small' | 'medium' | 'large')[] | undefined
  allowedRegistries?: string[] | undefined
  maxSleep?: string | undefined
  expiresAt?: string | null | undefined
  egress?: EgressBound | undefined
  /** The secrets of the team that its units may bind. `*` stands for all, and for the right to put and delete them. Only an owner or admin may give it. */
  allowedSecrets?: string[] | undefined
  /** Whether containers may run in its units: `nested` in their spec. */
  allowNested?: boolean | undefined
  /** Calls a minute, of all kinds, those that make units, and commands. One that is left out is the rate of the service; `GET /v1/quota` has all of them. */
  rates?: {
    requests?: number | undefined
    creations?: number | undefined
    execs?: number | undefined
  } | undefined
}

export type Pricing = {
  currency: 'eur'
  /** From the smallest to the largest. */
  sizes: ({
    size: 'nano' | 'small' | 'medium' | 'large'
    vcpu: number
    memoryMb: number
    diskGb: number
    /** The price while a unit runs; a sleeping or stopped unit costs nothing. */
    centsPerHour: number
  })[]
  /** The price of 1 GB for 30 days, whether the unit runs or not, until it is destroyed. */
  volumeCentsPerGbMonth: number
  /** How large the disks and volumes of all units of a team may be together, by plan. */
  planDiskGb: {
    hobby: number
    pro: number
    team: number
  }
  /** Given once for each verified mail address. */
  freeCreditsOnVerifyCents: number
}

export type Process = {
  id: string
  unitId: string
  /** Anything that looks like a password is masked, and a long command is cut. */
  cmd: string[]
  cwd: string | null
  keepsAwake: boolean
  tag: string | null
  /** Whether its standard input is open to calls. */
  takesInput: boolean
  /** Until when it keeps the unit awake while it runs; null if it does not. */
  awakeUntil: string | null
  /** `lost`: the process did not survive a sleep, restart or fork of the unit, or its end was not observed. */
  state: 'running' | 'exited' | 'lost'
  /** 128 + n for signal n; also 137 if the unit was stopped. */
  exitCode: number | null
  /** The process id in the unit; also the id of its process group. */
  pid: number | null
  startedAt: string
  endedAt: string | null
  /** The offsets of the stored bytes. */
  output: {
    from: number
    to: number
  }
}

export type ProcessInput = {
  /** What to write, at most 256 KB. */
  data?: string | undefined
  /** If `data` is base64, for bytes that are not text. */
  encoding?: 'base64' | undefined
  /** Whether standard input ends after `data`. */
  end?: boolean | undefined
}

export type ProcessInputTaken = {
  /** How many bytes of `data` were written. If not all, the process did not read in time: send the rest again. */
  taken: number
}

export type ProcessKeepAwake = {
  /** From now on; 0: no longer. Send it again before that is over to renew it. */
  forMs?: number | undefined
}

export type ProcessList = {
  /** Oldest first. */
  processes: Process[]
}

export type ProcessOutput = {
  /** In the order it was printed. */
  output: ProcessPiece[]
  /** Send it as `after` to get the output after this. */
  next: number
  /** Bytes between `after` and `next` that were already deleted. */
  dropped: number
  /** If it is not `running` and `output` is empty, there is no more output. */
  state: 'running' | 'exited' | 'lost'
  /** 128 + n for signal n; also 137 if the unit was stopped. */
  exitCode: number | null
}

export type ProcessPiece = {
  stream: 'stdout' | 'stderr'
  data: string
  /** Present if the data is not UTF-8. */
  encoding?: 'base64' | undefined
}

export type ProcessSignal = {
  /** Sent to the process group; KILL also reaches all descendants of the process. */
  signal?: 'HUP' | 'INT' | 'QUIT' | 'KILL' | 'USR1' | 'USR2' | 'TERM' | 'STOP' | 'CONT' | undefined
}

export type ProcessStart = {
  cmd: string[]
  /** Default: the working directory of the unit's own process. */
  cwd?: string | undefined
  /** Added to the unit's environment, and overrides it. */
  env?: { [name: string]: string } | undefined
  /** The content of standard input, which then ends unless `takesInput`. */
  stdin?: string | undefined
  /** Whether standard input stays open for POST /v1/units/{id}/processes/{processId}/input. */
  takesInput?: boolean | undefined
  /** Whether the unit stays awake while the process runs, for an hour from its start; keep-awake renews it. */
  keepsAwake?: boolean | undefined
  /** A name of yours, by which lists can be filtered. */
  tag?: string | undefined
  /** Who runs it: a name or a number of the unit's `/etc/passwd`, whose home is then `HOME`. Default: the user of the unit's own process. */
  user?: string | undefined
}

export type ProcessTable = {
  /** By pid. */
  processes: ProcessTableEntry[]
  /** Whether there are more than could be listed. */
  truncated: boolean
}

export type ProcessTableEntry = {
  pid: number
  parentPid: number
  uid: number
  /** The name of the uid in the unit; null if it has none. */
  user: string | null
  /** One letter, as `ps` shows it: `R` runs, `S` sleeps, `Z` has ended. */
  state: string
  /** Anything that looks like a password is masked, and a long command is cut. */
  cmd: string[]
  /** The background process that it belongs to; null if it belongs to none. */
  processId: string | null
  /** Of that background process. */
  tag: string | null
}

export type ProviderList = {
  /** The providers that people can sign in with. */
  providers: ('github' | 'google')[]
}

export type Quota = {
  /** Units that are creating, starting, running or stopping. */
  units: {
    live: number
    max: number
  }
  /** The disks and volumes of all units of the team, including sleeping and stopped ones. */
  disk: {
    promisedGb: number
    maxGb: number
  }
  spendToday: {
    cents: number
    /** Null for a session: only the limits of its team apply. */
    capCents: number | null
    resetsAt: string
  }
  /** The balance of the team. */
  creditBalanceCents: number
  allowedSizes: ('nano' | 'small' | 'medium' | 'large')[]
  allowedRegistries: string[]
  /** The longest idle window that the credential may set. */
  maxSleep: string
  expiresAt: string | null
  /** The most that a unit of the credential may reach. */
  egress: {
    /** Which public hosts: `open` all, `listed` those of `allow`, `none` no host. */
    mode: 'open' | 'listed' | 'none'
    /** For `listed`: names such as `api.github.com`, `*.pythonhosted.org` (names below it) and `github.com:22`, ranges such as `203.0.113.0/24` and `203.0.113.7/32:5432`, and presets such as `preset:npm`. A name without a port means ports 80 and 443. Names of units, below `internal`, are refused: `siblings` decides them. */
    allow: string[]
    /** Ranges such as `203.0.113.0/24` or addresses that are refused, whatever else allows them. Absent: none. */
    deny?: string[] | undefined
    /** Which units of the team: `team` all, `stack` those of its stack, `none` no unit. */
    siblings: 'team' | 'stack' | 'none'
  }
  /** The secrets of the team that units of the credential may bind; `*` stands for all. */
  allowedSecrets: string[]
  /** Whether containers may run in units of the credential. */
  allowNested: boolean
  /** The rate limits of the credential. This call is already counted. */
  rates: ({
    name: 'requests' | 'creations' | 'execs'
    /** Calls per minute. */
    limit: number
    remaining: number
    /** When the whole limit is available again. */
    resetsAt: string
  })[]
}

export type RecentMetrics = {
  /** The beginning of the first step. */
  from: string
  stepSeconds: number
  /** Units that ran in the last day: the 1000 that were made last. */
  units: ({
    id: string
    /** Processor time in each step; null where the unit slept or was stopped. */
    cpuMs: (number | null)[]
  })[]
}

export type Recipe = {
  name: string
  title: string
  description: string
  tags: string[]
  params: RecipeParameter[]
  /** The names of the outputs in the answer to a create, besides `URL` for a published unit. */
  outputs: {
    name: string
    description: string
    /** Whether it contains a generated secret, which only the answer to the create shows. */
    secret: boolean
  }[]
  /** The units with default parameters, in the order in which they start. */
  units: ({
    /** The default name; the create can set another. */
    name: string
    image: string
    size: 'nano' | 'small' | 'medium' | 'large'
    ports: number[]
    databasePorts: ({
      port: number
      protocol: 'http' | 'postgres' | 'mysql' | 'redis' | 'mongodb' | 'amqp' | 'bolt' | 'grpc'
    })[]
    volume: {
      mount: string
      gb: number
    } | null
  })[]
  /** The unit and port that `expose` of a create publishes; null if the recipe cannot be published. */
  frontDoor: {
    unit: string
    port: number
  } | null
}

export type RecipeItem = {
  name: string
  title: string
  description: string
  tags: string[]
}

export type RecipeList = {
  recipes: RecipeItem[]
}

export type RecipeParameter = {
  name: string
  type: 'string' | 'integer' | 'enum' | 'record' | 'secret'
  /** The allowed values of an enum. */
  options: string[] | null
  /** The default, encoded as JSON. */
  defaultValue: string | null
  required: boolean
  description: string | null
  /** The format of a value. */
  format: string | null
}

export type Region = {
  id: 'paris' | 'virginia' | 'singapore'
  label: string
  country: string
  zone: string
  /** Whether it is in the European Union. */
  eu: boolean
}

export type RoleChange = {
  role: 'owner' | 'admin' | 'member'
}

export type RunResult = {
  units: Unit[]
  /** Generated secrets, which only this answer shows, and `URL` if the unit is published. */
  outputs: { [name: string]: string }
  recipe: string | null
  /** Cost and sleep in words. */
  costLine: string
}

export type Secret = {
  name: string
  /** The hosts to which the value goes, on port 443 alone. */
  hosts: string[]
  /** Present if the secret is for these methods alone. */
  methods?: string[] | undefined
  /** Present if the secret is for these paths alone. */
  paths?: string[] | undefined
  /** What units have in place of the value. */
  placeholder: string
  /** How many units bind it. */
  units: number
  createdAt: string
  updatedAt: string
}

export type SecretAnswer = {
  secret: Secret
}

export type SecretDeleted = {
  ok: true
  /** The units that had it. They run on without it. */
  unbound: {
    id: string
    name: string
  }[]
}

export type SecretList = {
  /** By name; never a value. */
  secrets: Secret[]
}

export type SecretPut = {
  /** No answer shows it. */
  value: string
  /** Exact names, such as `api.openai.com`. */
  hosts: string[]
  /** The methods of the requests that the secret is for. Default: all. */
  methods?: ('GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS')[] | undefined
  /** The paths of the requests that the secret is for, exact or with `/*` at the end. Default: all. */
  paths?: string[] | undefined
  /** What units have in place of the value, for programs that check the form of a key. It stays for the life of the secret. Default: random. */
  placeholder?: string | undefined
}

export type Sleep = {
  /** How long the unit may idle before it sleeps; `never` keeps it running. */
  sleep: string
  /** Whether to set it for every unit of its stack, which then sleep and wake together. */
  stack?: boolean | undefined
  /** Whether to put the unit to sleep at once. */
  now?: boolean | undefined
}

export type SleepResult = {
  units: Unit[]
}

export type Stack = {
  id: string
  name: string
  teamId: string
  createdAt: string
  /** Oldest first. */
  units: Unit[]
}

export type StackCreate = {
  name: string
}

export type StackFork = {
  /** Name of the new stack. Default: a free name derived from the source's. */
  into?: string | undefined
  /** Default: the source's. */
  sleep?: string | undefined
  /** The labels of a copy. Default: the source's. */
  metadata?: { [name: string]: string } | undefined
  /** How long a copy lives, from when it is there. Default: the source's, from its beginning. */
  timeToLive?: string | undefined
  /** What happens then. Default: the source's. */
  atEnd?: 'destroy' | 'sleep' | 'stop' | undefined
  /** Whether to answer only once the units are ready. */
  wait?: boolean | undefined
  /** After this time the call answers, although the unit may still be `creating`. */
  waitTimeoutMs?: number | undefined
}

export type StackList = {
  stacks: Stack[]
  next: string | null
}

export type SupportMessage = {
  topic: 'question' | 'bug' | 'idea'
  message: string
}

export type SupportTicket = {
  ok: true
  /** The reference of this message in the reply. */
  ticket: string
}

export type Team = {
  id: string
  slug: string
  name: string
  personal: boolean
  plan: 'hobby' | 'pro' | 'team'
  /** The region of new units. */
  region: 'paris' | 'virginia' | 'singapore'
  /** The currency in which pages show money; amounts in answers are always euro cents. */
  currency: 'eur' | 'usd'
  /** The caller's own. */
  role: 'owner' | 'admin' | 'member'
  creditBalanceCents: number
  paysAsItGoes: boolean
  /** The most that a unit of the team may reach. */
  egress: {
    /** Which public hosts: `open` all, `listed` those of `allow`, `none` no host. */
    mode: 'open' | 'listed' | 'none'
    /** For `listed`: names such as `api.github.com`, `*.pythonhosted.org` (names below it) and `github.com:22`, ranges such as `203.0.113.0/24` and `203.0.113.7/32:5432`, and presets such as `preset:npm`. A name without a port means ports 80 and 443. Names of units, below `internal`, are refused: `siblings` decides them. */
    allow: string[]
    /** Ranges such as `203.0.113.0/24` or addresses that are refused, whatever else allows them. Absent: none. */
    deny?: string[] | undefined
    /** Which units of the team: `team` all, `stack` those of its stack, `none` no unit. */
    siblings: 'team' | 'stack' | 'none'
  }
}

export type TeamAnswer = {
  team: Team
}

export type TeamChange = {
  name?: string | undefined
  region?: 'paris' | 'virginia' | 'singapore' | undefined
  currency?: 'eur' | 'usd' | undefined
  /** The most that a unit of the team may reach. Units that may reach more are narrowed at once. */
  egress?: {
    /** Which public hosts: `open` all, `listed` those of `allow`, `none` no host. */
    mode?: 'open' | 'listed' | 'none' | undefined
    /** For `listed`: names such as `api.github.com`, `*.pythonhosted.org` (names below it) and `github.com:22`, ranges such as `203.0.113.0/24` and `203.0.113.7/32:5432`, and presets such as `preset:npm`. A name without a port means ports 80 and 443. Names of units, below `internal`, are refused: `siblings` decides them. */
    allow?: string[] | undefined
    /** Ranges such as `203.0.113.0/24` or addresses that are refused, whatever else allows them. Absent: none. */
    deny?: string[] | undefined
    /** Which units of the team: `team` all, `stack` those of its stack, `none` no unit. */
    siblings?: 'team' | 'stack' | 'none' | undefined
  } | undefined
}

export type TeamChanged = {
  team: Team
  /** The units whose rules of egress became narrower with this change, or that lost a secret. */
  narrowed: {
    id: string
    name: string
  }[]
}

export type TeamCreate = {
  name: string
  region?: 'paris' | 'virginia' | 'singapore' | undefined
  currency?: 'eur' | 'usd' | undefined
}

export type Unit = {
  id: string
  teamId: string
  stackId: string
  name: string
  image: string
  /** The arguments as declared; null for those of the image. */
  cmd: string[] | null
  /** As declared; null for that of the image. */
  entrypoint: string[] | null
  size: 'nano' | 'small' | 'medium' | 'large'
  state: 'creating' | 'running' | 'stopping' | 'stopped' | 'sleeping' | 'starting' | 'destroying' | 'destroyed' | 'error'
  /** The unit's host name on the team's private network. */
  internalHost: string
  endpoints: Endpoint[]
  ports: number[]
  databasePorts: ({
    port: number
    protocol: 'http' | 'postgres' | 'mysql' | 'redis' | 'mongodb' | 'amqp' | 'bolt' | 'grpc'
  })[]
  expose: number | null
  /** The environment as declared; secrets by name only. */
  env: { [name: string]: string | {
    secret: string
    hosts?: string[] | undefined
    /** Present if the secret is for these methods alone. */
    methods?: string[] | undefined
    /** Present if the secret is for these paths alone. */
    paths?: string[] | undefined
  } | {
    teamSecret: string
  } }
  volume: {
    mount: string
    gb: number
  } | null
  healthcheck: {
    cmd: string[]
    intervalMs: number
    timeoutMs: number
  } | null
  createdAt: string
  /** When the current run started, or the last one if the unit does not run. */
  startedAt: string | null
  sleep: string
  /** When the unit goes to sleep unless it is used before. */
  sleepsAt: string | null
  lastUsedAt: string | null
  costCentsSoFar: number
  error: string | null
  /** When a unit in `error` is destroyed. */
  destroysAt: string | null
  stoppedReason: 'idle' | 'cap' | 'credits' | 'user' | 'provider' | 'exited' | null
  lastExit: {
    /** The exit code; 128 + n for signal n. */
    code: number
    oomKilled: boolean
    at: string
  } | null
  files: {
    path: string
    bytes: number
  }[]
  /** The unit that it is a copy of, which may be destroyed by now. */
  forkedFrom: string | null
  /** What was copied of it; null for a unit that is no copy. */
  copied: 'memory' | 'disk' | 'config' | null
  /** The creator; null for a unit of an older release. */
  createdBy: {
    /** The id of the key or connected agent; for a session, of the person. */
    id: string
    kind: 'key' | 'oauth' | 'session'
    /** At that time; for a session, the address of the person. */
    name: string
  } | null
  memory: {
    /** For a sleeping unit: whether it wakes with the memory of its processes, or starts again from its disk. Null in every other state, and while this is not known yet. */
    kept: boolean | null
    /** Whether the memory survives the second tier of sleep and is copied by a fork. `tried`: the host attempts it. `lost`: only the disk is kept, since this host cannot keep memory or failed the last time. */
    longSleep: 'tried' | 'lost'
  }
  /** How far a unit in `creating` is; null in every other state. */
  progress: {
    /** `waiting`: other images, or units that it starts after, come first. `downloading`, `unpacking`, `building`: its image, which only the first unit waits for. `copying`: it is a fork. `preparing`: its disk and network. `starting`: its process. `checking`: until its healthcheck passes. */
    stage: 'waiting' | 'downloading' | 'unpacking' | 'building' | 'copying' | 'preparing' | 'starting' | 'checking'
    /** When this stage began. */
    startedAt: string
    /** Of a download that has begun; null for everything else. */
    bytes: {
      done: number
      total: number
    } | null
    /** The newest lines of the build of its image, oldest first. */
    log: string[]
  } | null
  /** The host that it runs on. */
  host: {
    /** Units with the same id run on the same host. */
    id: string
    /** Null where the operator named none. */
    region: string | null
  }
  /** What it may reach. */
  egress: {
    /** Which public hosts: `open` all, `listed` those of `allow`, `none` no host. */
    mode: 'open' | 'listed' | 'none'
    /** For `listed`: names such as `api.github.com`, `*.pythonhosted.org` (names below it) and `github.com:22`, ranges such as `203.0.113.0/24` and `203.0.113.7/32:5432`, and presets such as `preset:npm`. A name without a port means ports 80 and 443. Names of units, below `internal`, are refused: `siblings` decides them. */
    allow: string[]
    /** Ranges such as `203.0.113.0/24` or addresses that are refused, whatever else allows them. Absent: none. */
    deny?: string[] | undefined
    /** Which units of the team: `team` all, `stack` those of its stack, `none` no unit. */
    siblings: 'team' | 'stack' | 'none'
    /** Counts the changes of the rules and of brokered secrets; 0 for a unit without any. */
    version: number
  }
  /** Whether containers may run in it. */
  nested: boolean
  /** The program that its newest run was started with, such as `runsc 20260905.0` or `runc 1.1.5`. A unit keeps it until it starts again. Null before the first run. */
  runtime: string | null
  /** Labels that its team gave it. */
  metadata: { [name: string]: string }
  /** How long it lives, as it was last set; null without an end. */
  timeToLive: string | null
  /** What happens at the end of its time to live. */
  atEnd: 'destroy' | 'sleep' | 'stop'
  /** When its time to live has passed; null without one, and until the unit is ready. */
  endsAt: string | null
}

export type UnitCalls = {
  /** In the order of their first call. */
  calls: ({
    /** As the protocol names it. */
    method: string
    /** How often it was called like this. */
    count?: number | undefined
    /** What it started. Kept as that of exec is: cut, without passwords. */
    cmd?: string[] | undefined
    /** The file that it was about. */
    path?: string | undefined
    /** The session's id at its vendor. */
    session?: string | undefined
  })[]
}

export type UnitChange = {
  /** Replaces all labels. */
  metadata?: { [name: string]: string } | undefined
  /** How long the unit lives from now on, or from when it is ready; `never` takes its end away. */
  timeToLive?: string | undefined
  /** What happens then. `destroy` destroys the unit. `sleep` puts it to sleep, also in the middle of a command, and takes the time to live away: the unit wakes as any other, and then has no end until it is given one. `stop` stops it in the same way: it keeps its disk, and starts when it is told to. */
  atEnd?: 'destroy' | 'sleep' | 'stop' | undefined
}

export type UnitFork = {
  /** Default: a free name derived from the source's. */
  name?: string | undefined
  /** Name of a stack, created if absent. Default: the source's stack. */
  stack?: string | undefined
  /** Variables beside the source's, or in place of those of the same name. Processes that go on in the copy keep the environment that they have. */
  env?: { [name: string]: string } | undefined
  /** Default: the source's. */
  sleep?: string | undefined
  /** The labels of a copy. Default: the source's. */
  metadata?: { [name: string]: string } | undefined
  /** How long a copy lives, from when it is there. Default: the source's, from its beginning. */
  timeToLive?: string | undefined
  /** What happens then. Default: the source's. */
  atEnd?: 'destroy' | 'sleep' | 'stop' | undefined
  /** Whether to answer only once the units are ready. */
  wait?: boolean | undefined
  /** After this time the call answers, although the unit may still be `creating`. */
  waitTimeoutMs?: number | undefined
}

export type UnitList = {
  units: Unit[]
  next: string | null
}

export type UnitMetrics = {
  unitId: string
  state: 'creating' | 'running' | 'stopping' | 'stopped' | 'sleeping' | 'starting' | 'destroying' | 'destroyed' | 'error'
  at: string
  /** Counted since the start of the machine. Null while there is no machine: the unit is stopped, failed, or in its second tier of sleep. In the first tier the values do not change. */
  run: {
    startedAt: string | null
    cpu: {
      /** Processor time of all its processes. */
      usedMs: number
      /** How long its processes were throttled by the limit of its size. */
      limitedMs: number
      limitCpus: number
    }
    memory: {
      /** Memory without the page cache. */
      usedBytes: number
      /** Page cache, which the kernel frees when memory is needed. */
      cacheBytes: number
      /** The highest sum of both so far. Null if the kernel does not count it. */
      peakBytes: number | null
      /** The limit of the sum. In class `gvisor` it is larger than the memory of the size, because it includes the sandbox kernel. */
      limitBytes: number
    }
    pids: {
      /** Processes and threads; in class `gvisor` those of the sandbox kernel. */
      count: number
      limit: number
    }
    network: {
      receivedBytes: number
      sentBytes: number
    } | null
    /** Bytes read from and written to disk. With cgroups version 1, writes through the page cache are not counted. Null if the host does not count it. */
    io: {
      readBytes: number
      writtenBytes: number
    } | null
  } | null
  disk: {
    /** Includes blocks that it shares with its copies; up to half a minute old. Null while there is no disk, or if the host does not count it. */
    usedBytes: number | null
    limitBytes: number
  }
  volume: {
    /** Includes blocks that it shares with its copies; up to half a minute old. Null while there is no disk, or if the host does not count it. */
    usedBytes: number | null
    limitBytes: number
  } | null
}

export type UnitSecret = {
  name: string
  hosts: string[]
  /** Present if the secret is for these methods alone. */
  methods?: string[] | undefined
  /** Present if the secret is for these paths alone. */
  paths?: string[] | undefined
  /** What the unit has in place of the value; it stays. */
  placeholder: string
}

export type UnitSecretPut = {
  /** No answer shows it. */
  value: string
  /** Default: those that it has. */
  hosts?: string[] | undefined
  /** Null for all. Default: those that it has. */
  methods?: ('GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS')[] | null | undefined
  /** Null for all. Default: those that it has. */
  paths?: string[] | null | undefined
}

export type UnitSpec = {
  name: string
  image: string
  cmd?: string[] | undefined
  entrypoint?: string[] | undefined
  env?: { [name: string]: string | {
    secret: string
    value?: string | undefined
    /** With hosts the unit gets a placeholder, and the value goes into its requests to these hosts alone. */
    hosts?: string[] | undefined
    /** The methods of the requests that the secret is for. Default: all. */
    methods?: ('GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS')[] | undefined
    /** The paths of the requests that the secret is for, exact or with `/*` at the end. Default: all. */
    paths?: string[] | undefined
    /** Default: random. */
    placeholder?: string | undefined
  } | {
    /** A secret of the team; the unit gets its placeholder. */
    teamSecret: string
  } } | undefined
  ports?: number[] | undefined
  size?: 'nano' | 'small' | 'medium' | 'large' | undefined
  volume?: {
    mount: string
    /** The size of the volume in GB. `df` in the unit shows the whole pool of the host instead. */
    gb?: number | undefined
  } | undefined
  files?: { [name: string]: string | {
    base64: string
  } } | undefined
  healthcheck?: {
    cmd: string[]
    intervalMs?: number | undefined
    timeoutMs?: number | undefined
  } | undefined
  sleep?: string | undefined
  expose?: number | undefined
  /** Whether containers may run in the unit, with docker, podman or buildah. Only in the isolation class gvisor, and only for credentials whose policy has `allowNested`. */
  nested?: boolean | undefined
  /** What the unit may reach. Default: what the credential and its team allow. */
  egress?: {
    /** Which public hosts: `open` all, `listed` those of `allow`, `none` no host. Default: that of the credential's bound, with its `allow`. */
    mode?: 'open' | 'listed' | 'none' | undefined
    /** For `listed`: names such as `api.github.com`, `*.pythonhosted.org` (names below it) and `github.com:22`, ranges such as `203.0.113.0/24` and `203.0.113.7/32:5432`, and presets such as `preset:npm`. A name without a port means ports 80 and 443. Names of units, below `internal`, are refused: `siblings` decides them. */
    allow?: string[] | undefined
    /** Ranges such as `203.0.113.0/24` or addresses that are refused, whatever else allows them. Absent: none. Default: that of the credential's bound. */
    deny?: string[] | undefined
    /** Which units of the team: `team` all, `stack` those of its stack, `none` no unit. Default: that of the credential's bound. */
    siblings?: 'team' | 'stack' | 'none' | undefined
  } | undefined
  /** Labels of yours, by which lists can be filtered. */
  metadata?: { [name: string]: string } | undefined
  /** How long the unit lives once it is ready, however much it is used. A number with `s`, `m`, `h` or `d`. Default: `never`, without an end. */
  timeToLive?: string | undefined
  /** What happens when that time has passed. `destroy` destroys the unit. `sleep` puts it to sleep, also in the middle of a command, and takes the time to live away: the unit wakes as any other, and then has no end until it is given one. `stop` stops it in the same way: it keeps its disk, and starts when it is told to. Default: `destroy`. */
  atEnd?: 'destroy' | 'sleep' | 'stop' | undefined
}

export type UnitSummary = {
  byState: {
    creating?: number | undefined
    running?: number | undefined
    stopping?: number | undefined
    stopped?: number | undefined
    sleeping?: number | undefined
    starting?: number | undefined
    destroying?: number | undefined
    destroyed?: number | undefined
    error?: number | undefined
  }
  /** What these units cost an hour at this moment, with their volumes. */
  centsPerHour: number
  total: number
}

export type Usage = {
  /** Days in UTC, today last, including days without usage. */
  days: ({
    date: string
    /** The cost of machines and volumes. */
    costCents: number
    unitSeconds: {
      /** Seconds that units of this size ran. */
      nano: number
      /** Seconds that units of this size ran. */
      small: number
      /** Seconds that units of this size ran. */
      medium: number
      /** Seconds that units of this size ran. */
      large: number
    }
    /** With `by`: what the ten with the greatest cost of all these days cost on this one, greatest of all first; those without cost are left out. An agent is a key, a connected agent, or a person. */
    parts?: {
      id: string
      name: string
      costCents: number
    }[] | undefined
    /** With `by`: what all others cost on this day. */
    restCents?: number | undefined
  })[]
  totalCents: number
}

export type User = {
  id: string
  email: string
  name: string
  emailVerified: boolean
  /** Whether this person operates the service. */
  admin: boolean
}

/** Parameters and outputs of each recipe, by its name. */
export type Recipes = {
  postgres: {
    params: {
      database?: string | null | undefined
      user?: string | null | undefined
      size?: 'nano' | 'small' | 'medium' | 'large' | null | undefined
      volumeGb?: number | null | undefined
    }
    outputs: {
      DATABASE_URL: string
      POSTGRES_PASSWORD: string
    }
  }
  mariadb: {
    params: {
      database?: string | null | undefined
      user?: string | null | undefined
      size?: 'nano' | 'small' | 'medium' | 'large' | null | undefined
      volumeGb?: number | null | undefined
    }
    outputs: {
      DATABASE_URL: string
      MARIADB_PASSWORD: string
    }
  }
  redis: {
    params: {
      size?: 'nano' | 'small' | 'medium' | 'large' | null | undefined
      volumeGb?: number | null | undefined
    }
    outputs: {
      REDIS_URL: string
      REDIS_PASSWORD: string
    }
  }
  mongodb: {
    params: {
      user?: string | null | undefined
      size?: 'nano' | 'small' | 'medium' | 'large' | null | undefined
      volumeGb?: number | null | undefined
    }
    outputs: {
      MONGODB_URL: string
      MONGODB_PASSWORD: string
    }
  }
  neo4j: {
    params: {
      size?: 'nano' | 'small' | 'medium' | 'large' | null | undefined
      volumeGb?: number | null | undefined
    }
    outputs: {
      NEO4J_URL: string
      NEO4J_PASSWORD: string
    }
  }
  rabbitmq: {
    params: {
      user?: string | null | undefined
      size?: 'nano' | 'small' | 'medium' | 'large' | null | undefined
      volumeGb?: number | null | undefined
    }
    outputs: {
      AMQP_URL: string
      RABBITMQ_PASSWORD: string
    }
  }
  etcd: {
    params: {
      size?: 'nano' | 'small' | 'medium' | 'large' | null | undefined
      volumeGb?: number | null | undefined
    }
    outputs: {
      ETCD_URL: string
    }
  }
  node: {
    params: {
      files: { [name: string]: unknown }
      env?: { [name: string]: unknown } | null | undefined
      size?: 'nano' | 'small' | 'medium' | 'large' | null | undefined
    }
    outputs: Record<never, string>
  }
  python: {
    params: {
      files: { [name: string]: unknown }
      env?: { [name: string]: unknown } | null | undefined
      size?: 'nano' | 'small' | 'medium' | 'large' | null | undefined
    }
    outputs: Record<never, string>
  }
  static: {
    params: {
      files: { [name: string]: unknown }
      size?: 'nano' | 'small' | 'medium' | 'large' | null | undefined
    }
    outputs: Record<never, string>
  }
  debian: {
    params: {
      env?: { [name: string]: unknown } | null | undefined
      size?: 'nano' | 'small' | 'medium' | 'large' | null | undefined
    }
    outputs: Record<never, string>
  }
  docker: {
    params: {
      size?: 'nano' | 'small' | 'medium' | 'large' | null | undefined
      volumeGb?: number | null | undefined
    }
    outputs: Record<never, string>
  }
  browser: {
    params: {
      size?: 'nano' | 'small' | 'medium' | 'large' | null | undefined
    }
    outputs: {
      CDP_URL: string
    }
  }
  'claude-code': {
    params: {
      key?: { teamSecret: string } | { value: string } | null | undefined
      repository?: string | null | undefined
      repositoryToken?: { teamSecret: string } | { value: string } | null | undefined
      version?: string | null | undefined
      env?: { [name: string]: unknown } | null | undefined
      size?: 'nano' | 'small' | 'medium' | 'large' | null | undefined
    }
    outputs: Record<never, string>
  }
  codex: {
    params: {
      key?: { teamSecret: string } | { value: string } | null | undefined
      repository?: string | null | undefined
      repositoryToken?: { teamSecret: string } | { value: string } | null | undefined
      version?: string | null | undefined
      env?: { [name: string]: unknown } | null | undefined
      size?: 'nano' | 'small' | 'medium' | 'large' | null | undefined
    }
    outputs: Record<never, string>
  }
  'codex-executor': {
    params: {
      repository?: string | null | undefined
      repositoryToken?: { teamSecret: string } | { value: string } | null | undefined
      version?: string | null | undefined
      env?: { [name: string]: unknown } | null | undefined
      size?: 'nano' | 'small' | 'medium' | 'large' | null | undefined
    }
    outputs: Record<never, string>
  }
  'codex-environment': {
    params: {
      remote: string
      environment: string
      key?: { teamSecret: string } | { value: string } | null | undefined
      repository?: string | null | undefined
      repositoryToken?: { teamSecret: string } | { value: string } | null | undefined
      version?: string | null | undefined
      env?: { [name: string]: unknown } | null | undefined
      size?: 'nano' | 'small' | 'medium' | 'large' | null | undefined
    }
    outputs: Record<never, string>
  }
  'web-with-postgres': {
    params: {
      files: { [name: string]: unknown }
      env?: { [name: string]: unknown } | null | undefined
      size?: 'nano' | 'small' | 'medium' | 'large' | null | undefined
      databaseSize?: 'nano' | 'small' | 'medium' | 'large' | null | undefined
      volumeGb?: number | null | undefined
    }
    outputs: {
      DATABASE_URL: string
      POSTGRES_PASSWORD: string
    }
  }
}
