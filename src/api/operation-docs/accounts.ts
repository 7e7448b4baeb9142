// Keys, teams, people, money and the audit log.

import { type OperationDoc, sseExample } from './doc.ts'
import { agent, ids, invite, payment, policy, team, unit } from './values.ts'

const notAllowed =
  'Your role in the team does not allow it, or a key was sent where a person has to be signed in.'
const noTeam = 'There is no such team, or you are not a member of it.'
const lastOwner = 'A team needs at least one owner: make another member an owner first.'

// What a quota has of its credential's policy keeps the names that it has there.
const { maxConcurrentUnits, dailySpendCapCents, ...bounds } = policy

export const accountDocs: Record<string, OperationDoc> = {
  agentList: {
    answer: 'Keys and connected agents, revoked ones too, and how many seats of the plan are used.',
    response: { agents: [agent], seats: { used: 1, max: 10 } },
  },
  keyList: {
    answer: 'Keys, revoked ones too; never their secrets.',
    response: { keys: [agent] },
  },
  keyCreate: {
    answer: 'The key. Only this answer shows `secret`: keep it where only its agent reads it.',
    errors: {
      402: 'The plan has no seat left, or does not allow a field of the policy. The message says which.',
      403: notAllowed,
    },
    request: { name: 'ci', policy: { maxConcurrentUnits: 2, dailySpendCapCents: 200 } },
    response: {
      key: {
        ...agent,
        lastUsedAt: null,
        policy: { ...policy, maxConcurrentUnits: 2, dailySpendCapCents: 200 },
      },
      secret: 'berth_live_3k9v2q8m1x0z_b7QmYk2v9cTn4hLwXr8sPfJd6gZa1uEo5iVyK3tRq0M',
    },
  },
  keyChange: {
    answer: 'The key as it is now. Its open streams are checked against the new policy within seconds.',
    errors: { 403: notAllowed, 409: 'The key is revoked: make another.' },
    request: { policy: { dailySpendCapCents: 500 } },
    response: { agent: { ...agent, policy: { ...policy, dailySpendCapCents: 500 } }, narrowed: [] },
  },
  keyRevoke: {
    answer: 'The key is revoked. Its units stay, and cost as before.',
    errors: { 403: notAllowed },
    response: { ok: true },
  },
  agentChange: {
    answer: 'The agent as it is now.',
    errors: { 403: notAllowed, 409: 'The agent is revoked: connect it again.' },
    request: { name: 'Claude on the build machine' },
    response: { agent: { ...agent, name: 'Claude on the build machine' }, narrowed: [] },
  },
  agentDryRun: {
    answer:
      'The units that the change would stop and narrow if it were made now. By the time of the change, other units may run.',
    errors: { 403: notAllowed, 409: 'The agent is revoked: there is nothing to change.' },
    request: { policy: { maxConcurrentUnits: 1 } },
    response: { stops: [{ id: ids.unit, name: 'web' }], narrows: [] },
  },
  agentRevoke: {
    answer: 'The agent is revoked. Its units stay, and cost as before.',
    errors: { 403: notAllowed },
    response: { ok: true },
  },
  eventFollow: {
    answer: 'Events, until the client disconnects. One stream is one call, and one row in the audit log.',
    response: 'a stream of events',
    events: sseExample([
      { event: 'reset', id: '01jtcnx5b6-1', data: {} },
      { event: 'gone', id: '01jtcnx5b6-2', data: { id: unit.id } },
      {
        event: 'change',
        id: '01jtcnx5b6-3',
        data: {
          id: 'event_01jtcnw7b8v9c0x1z2q3w4e5r6',
          at: '2026-05-04T09:00:02.000Z',
          action: 'unit.exec',
          target: unit.id,
          status: 200,
          sentence: `ci ran a command in ${unit.id} npm test`,
        },
      },
    ]),
  },
  auditList: {
    answer: 'A page of calls. Send `next` as `cursor` for older ones.',
    response: {
      events: [
        {
          id: 'event_01jtcnw7b8v9c0x1z2q3w4e5r6',
          at: '2026-05-04T09:00:02.000Z',
          credential: { id: ids.key, kind: 'key', name: 'ci' },
          userId: ids.user,
          action: 'unit.exec',
          target: unit.id,
          targetName: unit.name,
          input: { cmd: ['mysql', '-p***', 'shop'], timeoutMs: 30_000 },
          status: 200,
          errorCode: null,
          durationMs: 41.2,
          costDeltaCents: 0.0001,
          via: 'api',
          agentName: null,
          agentVersion: null,
          userAgent: 'curl/8.5.0',
          requestId: 'req-7f3c',
        },
      ],
      next: null,
    },
  },
  pricingRead: {
    answer: 'The price of each size per hour, and of a volume per month. Amounts are euro cents.',
    response: {
      currency: 'eur',
      sizes: [{ size: 'small', vcpu: 0.5, memoryMb: 512, diskGb: 5, centsPerHour: 1 }],
      planDiskGb: { hobby: 600, pro: 3000, team: 30_000 },
      volumeCentsPerGbMonth: 10,
      freeCreditsOnVerifyCents: 500,
    },
  },
  quotaRead: {
    answer: 'What this credential may still use: units, spend of the day, credits, and calls of this minute.',
    response: {
      units: { live: 1, max: maxConcurrentUnits },
      spendToday: { cents: 12.5, capCents: dailySpendCapCents, resetsAt: '2026-05-05T00:00:00.000Z' },
      disk: { promisedGb: 12, maxGb: 600 },
      creditBalanceCents: 2487.5,
      ...bounds,
      rates: [{ name: 'requests', limit: 300, remaining: 299, resetsAt: '2026-05-04T09:01:00.000Z' }],
    },
  },
  usageRead: {
    answer: 'Costs and seconds of each day, by size. Days are those of UTC.',
    response: {
      days: [
        {
          date: '2026-05-04',
          costCents: 12.5,
          unitSeconds: { nano: 0, small: 45_000, medium: 0, large: 0 },
        },
      ],
      totalCents: 12.5,
    },
  },
  teamCreate: {
    answer: 'The team, of which the caller is the owner.',
    errors: {
      403: 'It needs the Pro plan or above in a team that you own, or an operator of the service, and a person who is signed in.',
    },
    request: { name: 'Shop', region: 'paris' },
    response: { team: { ...team, creditBalanceCents: 0 } },
  },
  teamChange: {
    answer: 'The team as it is now.',
    errors: { 403: notAllowed, 404: noTeam },
    request: { name: 'Shop and sons' },
    response: { team: { ...team, name: 'Shop and sons' }, narrowed: [] },
  },
  teamDelete: {
    answer:
      'The team is deleted: no one can act in it or join it. Its audit log and its charges stay on record.',
    errors: {
      403: `${notAllowed} A personal team cannot be deleted.`,
      404: noTeam,
      409: 'The team has units: destroy them first.',
    },
    response: { ok: true },
  },
  memberList: {
    answer: 'Members, and invitations that are not accepted yet.',
    errors: { 404: noTeam },
    response: {
      members: [
        {
          userId: ids.user,
          name: 'Ada',
          email: 'ada@example.com',
          role: 'owner',
          joinedAt: '2026-05-04T09:00:00.000Z',
        },
      ],
      invites: [invite],
    },
  },
  memberChangeRole: {
    answer: 'The role is changed, from the next call on.',
    errors: { 403: notAllowed, 409: lastOwner },
    request: { role: 'admin' },
    response: { ok: true },
  },
  memberRemove: {
    answer:
      'The person is not a member any more. `keysToReview` lists keys that this person created and that still work.',
    errors: { 403: notAllowed, 409: lastOwner },
    response: {
      ok: true,
      keysToReview: [{ id: ids.key, name: 'ci', prefix: agent.prefix }],
    },
  },
  inviteCreate: {
    answer: 'The invitation. Only the mail contains its link.',
    errors: {
      402: 'The plan has no room for another member.',
      403: `${notAllowed} Inviting people needs the Pro plan or above.`,
      409: 'This person is a member already.',
    },
    request: { email: 'grace@example.com', role: 'member' },
    response: { invite },
  },
  inviteRevoke: {
    answer: 'The invitation is revoked.',
    errors: { 403: notAllowed },
    response: { ok: true },
  },
  inviteRead: {
    answer: 'The team that the invitation is for, and until when it is valid.',
    errors: { 404: 'The invitation does not exist any more: ask for another.' },
    response: {
      teamId: ids.team,
      teamName: 'Shop',
      email: 'grace@example.com',
      role: 'member',
      inviterName: 'Ada',
      expiresAt: '2026-05-11T09:00:00.000Z',
      expired: false,
    },
  },
  inviteAccept: {
    answer: 'The team, of which the caller is a member now.',
    errors: {
      403: 'It was sent to another address: sign in as that one.',
      404: 'The invitation does not exist any more: ask for another.',
      409: 'It has expired: ask for another.',
    },
    response: { team: { ...team, role: 'member' } },
  },
  paymentCreate: {
    answer: 'The payment, with the URL at which a browser pays.',
    cost: 'Nothing by itself; what is paid becomes credits.',
    errors: {
      403: 'Your role does not allow it, or this service takes no payments.',
      409: 'Too many payments are open: pay one, or let it expire.',
      502: 'The payment provider could not be reached. Nothing was charged: send the call again.',
    },
    request: { amountCents: 2000 },
    response: { payment },
  },
  paymentList: {
    answer: 'Payments, newest first, a hundred at most.',
    errors: { 403: notAllowed, 404: noTeam },
    response: {
      payments: [{ ...payment, state: 'paid', checkoutUrl: null, closedAt: '2026-05-04T09:05:00.000Z' }],
    },
  },
  paymentHear: {
    request: '{"id":"evt_1Q","type":"checkout.session.completed","data":{"object":{"id":"cs_test_a1"}}}',
    answer: 'The event was accepted.',
    response: { received: true },
  },
  providerList: {
    answer: 'The providers that this service has set up.',
    response: { providers: ['github', 'google'] },
  },
  meRead: {
    answer: 'The person, the teams, and what this service offers.',
    response: {
      user: { id: ids.user, email: 'ada@example.com', name: 'Ada', emailVerified: true, admin: false },
      teams: [team],
      currentTeamId: ids.team,
      regions: [{ id: 'paris', label: 'Paris', country: 'France', zone: 'eu-west', eu: true }],
      freeCreditsOnVerifyCents: 500,
      apiUrl: 'https://berth.example.com/v1',
      support: { form: true, email: 'support@example.com' },
      payments: true,
      maxSleep: 'never',
    },
  },
  meChange: {
    answer: 'The name as it is now.',
    request: { name: 'Ada Lovelace' },
    response: { id: ids.user, name: 'Ada Lovelace' },
  },
  supportSend: {
    answer: 'The message was accepted. `ticket` identifies it in the replies.',
    errors: { 502: 'The message could not be delivered. Send it again later.' },
    request: { topic: 'question', message: 'How do I move a unit to another region?' },
    response: { ok: true, ticket: 'T-4821' },
  },
  openapiRead: {
    answer: 'The OpenAPI 3.1 document of this service.',
    response: { openapi: '3.1.0', info: { title: 'Berth', version: '1.0.0' }, paths: {} },
  },
}
