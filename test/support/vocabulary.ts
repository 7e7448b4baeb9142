// Words that this project once had for itself alone, each with the one that engineers elsewhere use. They must not come
// back: a reader of the code, a log line or a page knows the field's words already. A word with a right use in English is
// refused in its private shape only, such as an identifier.

type BannedWord = {
  /** As it stood in the code or in a text. */
  pattern: RegExp
  instead: string
}

export const bannedWords: readonly BannedWord[] = [
  // Lifecycle
  {
    pattern:
      /\b(?:create|start|restart|stop|sleep|destroy|thaw|cool)Way\b|\bwayOf\b|\bwayEnded\b|\bapp\.ways\b/,
    instead: 'operation',
  },
  {
    pattern: /\b(?:Walk|walk(?:Alone|Fork)|(?:new|find|Fork)Walk)\b/,
    instead: 'runOperation, OperationContext',
  },
  {
    pattern: /\bberth_(?:way_seconds|loop_rounds_total)\b/,
    instead: 'berth_unit_operation_seconds, berth_job_runs_total',
  },
  { pattern: /\b(?:Steady|steady)Clock\b|\bclock\.steadily\b/, instead: 'ServiceClock, withStableTime' },
  { pattern: /\blived[- ]time\b/, instead: 'service time' },
  {
    pattern: /\bgetSettledUnit\b|\buntilMoved\b|\bwithOthers\b/,
    instead: 'waitUntilStable, waitForChange, withWaiterLimit',
  },
  { pattern: /\bpassing states?\b|\bpassingStates\b/, instead: 'transitional state' },
  {
    pattern: /\bapp\.(?:looks|touches|departures|standing|fallingAsleep)\b/,
    instead: 'what UnitActivity has: reads, useWrites, events, takeFrozen',
  },
  { pattern: /\bvisitStanding\b|\bstandStillAgain\b/, instead: 'thawBeforeAdmission, refreeze' },
  { pattern: /\bcool(?:ed)?(?:Unit|FrozenUnits)\b|'cooled'/, instead: 'hibernate' },
  // Admission
  { pattern: /\bturnstiles?\b/i, instead: 'admission queue' },
  { pattern: /\bNoTurn\b/, instead: 'AdmissionRejected' },
  { pattern: /\brefuseCrowd\b|\blacksRoom\b/, instead: 'shedLoad, isOverloaded' },
  { pattern: /\btakeOn(?:InTurn)?\b|\bcheckLastHolder\b/, instead: 'admitUnit, checkLastCredential' },
  { pattern: /\bwidePolicy\b/, instead: 'unrestrictedPolicy' },
  { pattern: /\bweighsOnMs\b/, instead: 'releaseDelayMs' },
  { pattern: /\bcreateShare\b/, instead: 'createConcurrencyLimit' },
  { pattern: /\b[Ff]reshFlights?\b/, instead: 'TrailingFlight' },
  { pattern: /\bdoneWithin\b/, instead: 'completesWithin' },
  // Gateway
  { pattern: /\b(?:create)?Visiting(?:Options)?\b/, instead: 'GatewayContext' },
  { pattern: /\b(?:create)?LastingVisits\b|\blasting visits?\b/, instead: 'long sessions' },
  { pattern: /\bUnitUse\b/, instead: 'WakeLeases' },
  { pattern: /\bWakeServer\b|\bDepartureWatcher\b/, instead: 'ServerClient, RunEndWatcher' },
  { pattern: /\blabelMeant\b/, instead: 'requestedLabel' },
  { pattern: /\b[Ss]peaksFirst\b/, instead: 'client-first protocol' },
  { pattern: /\bTLS greeting\b|\bgreeting of TLS\b/, instead: 'ClientHello' },
  {
    pattern: /\b(?:open|with)NamesOnDemand\b|\bKeptCertificates\b/,
    instead: 'on-demand TLS, CertificateCache',
  },
  // Engine
  { pattern: /\bisDoomed\b|\.doom\b|\bdoom:/, instead: 'hasPendingKill, destroySignal' },
  { pattern: /\bremoveRemains\b|\bengine\.remains\b/, instead: 'cleanUpMachine, engine.cleanup' },
  { pattern: /\bwhileHeld\b|\breleaseAbandoned\b/, instead: 'whileQuiesced, resumeAbandoned' },
  {
    pattern: /\b(?:take|keep|forget|dump|forgetTorn)Memory\b/,
    instead: 'checkpoint: dump, commit, consume, discard',
  },
  { pattern: /\bbeginningOf\b/, instead: 'startFingerprintOf' },
  { pattern: /\bimageCaps\b|\bImageCaps\b/, instead: 'imageLimits' },
  { pattern: /\bUpkeep(?:Settings)?\b|\bkeepUp\b/, instead: 'Maintenance, runMaintenance' },
  { pattern: /\b(?:image|start)Upkeep\b|\bupkeep\b/, instead: 'maintenance' },
  { pattern: /\buntilClean\b|\bremoveTraces\b/, instead: 'waitForCleanup, cleanUpRun' },
  { pattern: /\b(?:create)?(?:Pull)?Turns\b(?=\()/, instead: 'createPullQueue, createConcurrencyLimit' },
  { pattern: /\bquick[- ]calls?\b|\bconnectQuickly\b/i, instead: 'low-latency RPC' },
  // The rest
  { pattern: /\bMOST_[A-Z]/, instead: 'MAX_' },
  { pattern: /\b(?:startRole|runRole|RoleName|StartedRole)\b/, instead: 'process: startProcess, runProcess' },
  { pattern: /\bkeepRunning\b/, instead: 'superviseService' },
  { pattern: /\bmustHaves\b|\bmust-haves\b/, instead: 'preflight' },
  { pattern: /\btakeOver(?:Lead)?\(/, instead: 'acquireLeadership' },
  { pattern: /\b(?:actIn|mailLink)\b/, instead: 'actingTeam, magicLink' },
  { pattern: /\bstackFor\b|\bfreeName\b/, instead: 'resolveStack, firstFreeName' },
  { pattern: /\bshow(?:Unit|Stack|Team|Agent|Payment|Invite)\b/, instead: 'toUnit, toStack …: a presenter' },
  { pattern: /\bdomain\.troubles\b/, instead: 'domain.faults, Fault' },
  {
    pattern: /\bhearOfPayment\b|\bsettlePayments\b|\bnextLook\b/,
    instead: 'handlePaymentEvent, reconcilePayments, nextPollAt',
  },
  { pattern: /\brecountLedger\b|\brecountTeam\b|\bteamRecounted\b/, instead: 'verifyLedger' },
  {
    pattern: /\bcould not be driven on\b|\bwas not put in order\b|\bround of a loop\b/,
    instead: 'failed to resume, cleanup failed, job iteration',
  },
]

/** Words that hide who acts. A sentence names its subject: the caller, the client, the unit, the team. */
const vaguePersons: readonly BannedWord[] = [
  { pattern: /\bwho(?:so)?m?ever\b/i, instead: 'the caller, the client, the unit …' },
  { pattern: /\b(?:[Hh]e|[Hh]im|[Hh]is|[Hh]imself)\b/, instead: 'the person, they, their' },
]

/** In comments of the program. The subject is what acts, and a thing that happens again happens again. */
const vagueInComments: BannedWord = {
  pattern: /\b(?:somebody|anew)\b/i,
  instead: 'a person, another caller, a process; again',
}

/** In decisions: who acted is the point of them. */
const vagueInDecisions: BannedWord = {
  pattern: /\b(?:nobody|somebody|everybody|anybody)\b/i,
  instead: 'no caller, a client, every team, any program …',
}

/** Where such words stay: the contract itself, files that never change, and the rule with its test. */
const mayBeVague = /^docs\/spec\.md|^src\/store\/migrations\/|^test\/(?:tidy\.test|support\/vocabulary)\.ts$/

function vagueFaults(path: string, text: string): string[] {
  if (mayBeVague.test(path)) return []
  const faults = vaguePersons.flatMap((word) => faultOf(path, text, word))
  if (path.startsWith('docs/decisions/')) return [...faults, ...faultOf(path, text, vagueInDecisions)]
  if (!path.startsWith('src/') || path.endsWith('.test.ts')) return faults
  return [...faults, ...faultOf(path, commentsOf(text), vagueInComments)]
}

/** Names of the program, in backticks, are no prose. */
function commentsOf(text: string): string {
  const lines = text.split('\n').filter((line) => /^\s*(?:\/\/|\/?\*)/.test(line))
  return lines.join('\n').replaceAll(/`[^`]*`/g, '')
}

function faultOf(path: string, text: string, { pattern, instead }: BannedWord): string[] {
  const found = pattern.exec(text)
  return found ? [`${path}: says "${found[0]}"; write: ${instead}`] : []
}

/** One line per word that came back in a file, with what to write instead. */
export function vocabularyFaults(path: string, text: string): string[] {
  return [...vagueFaults(path, text), ...bannedFaults(path, text)]
}

function bannedFaults(path: string, text: string): string[] {
  return bannedWords.flatMap(({ pattern, instead }) => {
    const found = pattern.exec(text)
    return found ? [`${path}: says "${found[0]}", a word of our own; the field's is: ${instead}`] : []
  })
}
