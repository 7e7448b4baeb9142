// The numbers of spec 8, and those design 5 adds. Code, OpenAPI and tests read them here alone.

const KB = 1024
const MB = 1024 * KB

export const limits = {
  requestsPerMinute: 300,
  creationsPerMinute: 30,
  execsPerMinute: 120,
  fileBytes: MB,
  bootFiles: 64,
  bootFilesBytes: 256 * KB,
  nameLength: 32,
  imageLength: { min: 3, max: 255 },
  argvItems: 64,
  argvItemLength: 8192,
  envNameLength: 128,
  envValueLength: 32768,
  /** Beyond spec 8: a process's environment has to fit the kernel's limit for it. */
  envEntries: 256,
  envBytes: MB,
  secretNameLength: 128,
  /** Units of a stack that are copied at once: all of them stand still for the same instant. */
  forkUnits: 32,
  ports: 32,
  portMax: 65535,
  volumeGb: { min: 1, max: 500, default: 2 },
  volumeMountLength: 255,
  healthcheckIntervalMs: { min: 500, default: 2000 },
  healthcheckTimeoutMs: { min: 1000, max: 300_000, default: 60_000 },
  /** One probe is killed after this at most (design 5). */
  healthcheckProbeMs: 10_000,
  waitTimeoutMs: { max: 300_000, default: 120_000 },
  execTimeoutMs: { min: 1, max: 3_600_000, default: 120_000 },
  /** A JSON exec answer keeps this much of each stream and says `truncated` (design 3). */
  execOutputBytes: MB,
  /** An exec may carry a script as an argument; the kernel takes 128 KB for one. */
  execArgvItems: 1024,
  execArgvItemLength: 32768,
  execStdinLength: MB,
  /** Background processes that are remembered of one unit, and of all units of a team, with what each of them printed last. */
  processes: 64,
  teamProcesses: 256,
  processOutputBytes: MB,
  /** It waits in a pipe, which holds this much. */
  processStdinBytes: 64 * KB,
  /** Of one answer; a piece is what one stream has said until the other said something. */
  processPageBytes: { min: KB, max: 512 * KB, default: 256 * KB },
  processPagePieces: 1000,
  /** Of its command, as it is told. */
  processShownLength: 4096,
  processAwakeMs: 3_600_000,
  /** A path the kernel takes, with room for its own prefix. */
  pathLength: 1024,
  logBytes: 16 * MB,
  /** Of what a unit printed that could not be made, and how many such logs of a team are kept, the newest. */
  keptLogCharacters: 256 * KB,
  keptLogsOfTeam: 50,
  /** What can be bought at once, in euro cents, and how many payments of a team may wait for somebody to pay. */
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
