// A call of the audit log as a sentence: who did what, and what it was about; the dashboard, the CLI and the events of a team
// say it. Everything in it was sent by a caller, and is shown as text.

import type { AuditEvent } from './audit.ts'
import { type ChangeAction, changeActions } from './audit-actions.ts'

type Input = Readonly<Record<string, unknown>>
/** The verb, and what a person may want to know of it at once. */
type Said = { verb: string; detail?: string | undefined }

const MAX_DETAIL = 80

const text = (value: unknown): string | undefined =>
  typeof value === 'string' ? value : typeof value === 'number' ? String(value) : undefined
const record = (value: unknown): Input =>
  typeof value === 'object' && value !== null ? (value as Input) : {}
const command = ({ cmd }: Input): string | undefined => {
  if (!Array.isArray(cmd)) return text(cmd)
  const words = cmd.map(String)
  // What a shell runs is its line.
  return words.length === 3 && words[1] === '-c' ? words[2] : words.join(' ')
}
/** The first commands of a report, or else its methods. */
const told = (calls: unknown): string => {
  const all = (Array.isArray(calls) ? calls : []).map(record)
  const commands = all.filter(({ cmd }) => cmd !== undefined).map((call) => command(call))
  const methods = all.map(({ method, count }) =>
    count === 1 ? text(method) : `${text(method)} ×${text(count)}`,
  )
  return (commands.length > 0 ? commands : methods).join(', ')
}
const verb = (verb: string) => (): Said => ({ verb })
const withPath =
  (verb: string) =>
  (input: Input): Said => ({ verb, detail: text(input['path']) })

const says = {
  'unit.create': (input) => {
    const spec = record(input['spec'])
    return { verb: 'created', detail: text(input['recipe']) ?? text(spec['image']) ?? text(input['image']) }
  },
  'unit.change': verb('changed'),
  'unit.exec': (input) => ({ verb: 'ran a command in', detail: command(input) }),
  'unit.file.write': withPath('wrote a file in'),
  'unit.file.delete': withPath('deleted a file in'),
  'unit.file.receive': withPath('wrote a file in'),
  'unit.file.move': withPath('moved a file in'),
  'unit.archive.write': withPath('unpacked an archive in'),
  'unit.directory.make': withPath('made a folder in'),
  'unit.expose': (input) => ({ verb: 'published a port of', detail: text(input['port']) }),
  'unit.stop': verb('stopped'),
  'unit.start': verb('started'),
  'unit.sleep': (input) =>
    input['now'] === true
      ? { verb: 'put to sleep' }
      : { verb: 'changed the sleep of', detail: text(input['sleep']) },
  'unit.destroy': verb('destroyed'),
  'unit.egress': (input) => ({ verb: 'changed the network rules of', detail: text(input['mode']) }),
  'unit.secret': (input) => ({ verb: 'replaced a secret of', detail: text(input['name']) }),
  'unit.calls': (input) => ({ verb: 'called by a port of its own', detail: told(input['calls']) }),
  'unit.terminal': (input) => ({ verb: 'opened a terminal in', detail: command(input) }),
  'unit.fork': (input) => ({ verb: 'forked', detail: text(input['name']) }),
  'code.run': verb('ran code in'),
  'code.context.create': (input) => ({ verb: 'began a context of code in', detail: text(input['language']) }),
  'code.context.restart': verb('restarted a context of code in'),
  'code.context.interrupt': verb('interrupted code in'),
  'code.context.delete': verb('ended a context of code in'),
  'process.start': (input) => ({ verb: 'started a process in', detail: command(input) }),
  'process.signalPid': (input) => ({ verb: 'sent a signal in', detail: text(input['signal']) }),
  'process.signal': (input) => ({ verb: 'sent a signal in', detail: text(input['signal']) }),
  'process.input': verb('sent input to a process in'),
  'process.keepAwake': verb('kept a process awake in'),
  'process.delete': verb('ended a process in'),
  'stack.create': verb('created the stack'),
  'stack.destroy': verb('destroyed the stack'),
  'stack.fork': verb('forked the stack'),
  'secret.put': (input) => ({ verb: 'set a secret', detail: text(input['name']) }),
  'secret.delete': (input) => ({ verb: 'deleted a secret', detail: text(input['name']) }),
  'hosted.create': (input) => ({
    verb: 'lets agents of an environment work here',
    detail: text(input['environment']),
  }),
  'hosted.change': (input) => ({
    verb: input['on'] === true ? 'switched on' : input['on'] === false ? 'switched off' : 'changed',
    detail: 'an environment of hosted agents',
  }),
  'hosted.delete': verb('deleted an environment of hosted agents'),
  'key.create': (input) => ({ verb: 'created a key', detail: text(input['name']) }),
  'key.change': verb('changed the key'),
  'key.revoke': verb('revoked the key'),
  'agent.change': verb('changed the limits of'),
  'agent.revoke': verb('revoked'),
  'team.create': verb('created the team'),
  'team.change': verb('changed the team'),
  'team.delete': verb('deleted the team'),
  'member.changeRole': (input) => ({ verb: 'changed the role of', detail: text(input['role']) }),
  'member.remove': verb('removed'),
  'invite.create': (input) => ({ verb: 'invited', detail: text(input['email']) }),
  'invite.revoke': verb('withdrew an invitation'),
  'invite.accept': verb('joined the team'),
  'payment.create': verb('bought credits'),
  'me.change': verb('changed their account'),
  'support.send': verb('wrote to support'),
} as const satisfies Record<ChangeAction, (input: Input) => Said>

/** Reads and other calls keep the name that the API has for them. */
export function sayCall({ action, input }: Pick<AuditEvent, 'action' | 'input'>): Said {
  const said: Said = action in says ? says[action as ChangeAction](input ?? {}) : { verb: action }
  const { detail } = said
  return detail !== undefined && detail.length > MAX_DETAIL
    ? { ...said, detail: `${detail.slice(0, MAX_DETAIL)}…` }
    : said
}

/** The agent or the person, with the program that it calls with. */
export function whoOf({
  credential,
  agentName,
}: Pick<AuditEvent, 'agentName'> & { credential: { name: string } }): string {
  return agentName === null || agentName === credential.name
    ? credential.name
    : `${credential.name} · ${agentName}`
}

/** Why nothing came of it; null where it was answered. A caller that hung up was not refused. */
export function refusalOf({ status, errorCode }: Pick<AuditEvent, 'status' | 'errorCode'>): string | null {
  if (status === null) return 'no answer'
  return status >= 400 && status !== 499 ? (errorCode ?? String(status)).replaceAll('_', ' ') : null
}

/** What was done, to what, and why nothing came of it: the sentence without who. */
export function whatOf(
  event: Pick<AuditEvent, 'action' | 'input' | 'target' | 'targetName' | 'status' | 'errorCode'>,
): string {
  const { verb, detail } = sayCall(event)
  const refusal = refusalOf(event)
  const target = event.targetName ?? event.target
  const words = [refusal === null ? null : 'tried:', verb, target, detail, refusal && `(${refusal})`]
  return words.filter((word) => word !== null && word !== undefined).join(' ')
}

export function isChange(action: string): action is ChangeAction {
  return (changeActions as readonly string[]).includes(action)
}
