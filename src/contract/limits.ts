// The limits of spec 8, and those added by design 5. Code, the OpenAPI document and tests read them only from here.

const KB = 1024
const MB = 1024 * KB

export const limits = {
  requestsPerMinute: 300,
  creationsPerMinute: 30,
  execsPerMinute: 120,
  fileBytes: MB,
  /** Of a file as a stream, either way, and how long it may take. */
  streamedFileBytes: 64 * 1024 * MB,
  streamedFileMs: 3_600_000,
  /** How long a directory may be watched by one call. */
  watchMs: 12 * 3_600_000,
  /** Of a directory as one archive, either way, and how long it may take. */
  archiveBytes: 2 * 1024 * MB,
  archiveMs: 600_000,
  /** Of a directory, and of one answer. */
  directoryEntries: 20_000,
  directoryPageEntries: 1000,
  directoryDepth: 32,
  bootFiles: 64,
  bootFilesBytes: 256 * KB,
  nameLength: 32,
  /** Labels of a unit. */
  metadataEntries: 64,
  metadataNameLength: 128,
  metadataValueLength: 1024,
  metadataBytes: 16 * KB,
  imageLength: { min: 3, max: 255 },
  argvItems: 64,
  argvItemLength: 8192,
  envNameLength: 128,
  envValueLength: 32768,
  /** Not in spec 8: the environment of a process must fit the kernel's limit. */
  envEntries: 256,
  envBytes: MB,
  secretNameLength: 128,
  /** Units of a stack copied at once; all of them are paused at the same instant. */
  forkUnits: 32,
  ports: 32,
  portMax: 65535,
  /** Not in spec 8: what a unit may reach. A name has at most 253 characters, and a port follows it. */
  egressEntries: 128,
  egressEntryLength: 300,
  /** Not in spec 8: brokered secrets of a team, of a unit, and the hosts of each (see lib/egress/secrets.ts). */
  teamSecrets: 256,
  unitSecrets: 32,
  secretHosts: 16,
  secretPaths: 32,
  /** Not in spec 8: environments of hosted agents, their sessions, and those that are remembered and shown. */
  hostedEnvironments: 20,
  environmentKeyLength: 8192,
  sessionsAtOnce: { min: 1, max: 200, default: 8 },
  hostedSessionsKept: 1000,
  hostedSessionsShown: 100,
  /** Not in spec 8: calls of one report of what reached a unit through a port of its own. */
  toldCalls: 40,
  volumeGb: { min: 1, max: 500, default: 2 },
  volumeMountLength: 255,
  healthcheckIntervalMs: { min: 500, default: 2000 },
  healthcheckTimeoutMs: { min: 1000, max: 300_000, default: 60_000 },
  /** The longest timeout of a probe, after which it is killed (design 5). */
  healthcheckProbeMs: 10_000,
  waitTimeoutMs: { max: 300_000, default: 120_000 },
  execTimeoutMs: { min: 1, max: 3_600_000, default: 120_000 },
  /** A terminal ends after this, however it is used. */
  terminalMs: 12 * 3_600_000,
  /** Of its columns and its rows. */
  terminalSide: 1000,
  /** Of a unit, of terminals that outlive their client. */
  terminalSessions: 16,
  terminalSessionNameLength: 64,
  /** How long such a one waits for a client. */
  terminalDetachedMs: 10 * 60_000,
  /** What it shows to the next client of what was printed before. */
  terminalKeptBytes: 256 * KB,
  /** A JSON exec answer keeps this much of each stream and sets `truncated` (design 3). */
  execOutputBytes: MB,
  /** An exec may carry a script as an argument; the kernel limits one argument to 128 KB, with the NUL at its end. */
  execArgvItems: 1024,
  execArgvItemBytes: 128 * KB - 1,
  execStdinLength: MB,
  /** Code in a context: its text, all it prints, and all of its results. */
  codeLength: MB,
  codePrintedCharacters: 32 * MB,
  codeResultBytes: 9 * MB,
  codeContexts: 64,
  /** A command is given longer, so that the code can be interrupted and its context begun again. */
  codeTimeoutMs: 3_500_000,
  /** Processes in the answer of what runs in a unit. */
  processTable: 4096,
  processTagLength: 128,
  /** Background processes remembered of one unit, and of all units of a team, each with its last output. */
  processes: 64,
  teamProcesses: 256,
  processOutputBytes: MB,
  /** Standard input waits in a pipe, which holds this much. */
  processStdinBytes: 64 * KB,
  /** In one call to a process whose input is open. */
  processInputBytes: 256 * KB,
  /** Bytes in one answer; a piece is the output of one stream up to the next output of the other. */
  processPageBytes: { min: KB, max: 512 * KB, default: 256 * KB },
  processPagePieces: 1000,
  /** How long a stream of output may be followed. */
  followMs: { min: 0, max: 3_600_000 },
  /** Characters shown of a process's command. */
  processShownLength: 4096,
  processAwakeMs: 3_600_000,
  /** The longest path the kernel accepts, less the engine's own prefix. */
  pathLength: 1024,
  logBytes: 16 * MB,
  /** The log kept of a unit whose creation failed, and how many such logs a team keeps (the newest). */
  keptLogCharacters: 256 * KB,
  keptLogsOfTeam: 50,
  /** The amount of one payment in euro cents, and how many unpaid payments a team may have. */
  paymentCents: { min: 500, max: 100_000 },
  openPayments: 100,
  paymentEventBytes: 256 * KB,
  usageDays: { max: 366, default: 14 },
  pageSize: { max: 500, default: 100 },
  userNameLength: 80,
  teamNameLength: { min: 2, max: 60 },
  inviteEmailLength: 254,
  supportMessageLength: 10_000,
} as const
