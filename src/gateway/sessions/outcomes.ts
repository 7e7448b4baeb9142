// The outcomes of visits other than an answer of the unit, and their messages. All of these texts are here: they
// repeat nothing of a request, and a wrong secret looks like an unknown address.

import type { VisitRefusal } from '../../contract/visit.ts'

export type Outcome =
  | { kind: 'unknown' }
  | { kind: 'malformed' }
  /** The head of the request is larger than the limit. */
  | { kind: 'head-too-large' }
  /** The request came without TLS on the TLS port. */
  | { kind: 'plain' }
  /** The client sends no server name. */
  | { kind: 'missing-sni' }
  /** The connection was made to another name than the request's. */
  | { kind: 'misdirected' }
  /** The endpoint cannot be looked up at the moment. */
  | { kind: 'routing-unavailable' }
  /** The gateway of the unit's host does not answer. */
  | { kind: 'host-away' }
  | { kind: 'too-many' }
  | { kind: 'waiting'; retryAfterS: number }
  | { kind: 'refused'; reason: VisitRefusal }
  | { kind: 'not-listening'; port: number }
  | { kind: 'bad-gateway' }
  | { kind: 'too-slow' }
  | { kind: 'visitor-too-slow' }

export type ErrorMessage = {
  status: number
  /** For programs. */
  code: string
  title: string
  text: string
  /** Advice for the owner of the unit. */
  advice?: string
  retryAfterS?: number
  /** The connection must not be used again. */
  closes?: true
}

const nothingHere: ErrorMessage = {
  status: 404,
  code: 'not_found',
  title: 'There is nothing at this address',
  text: 'The unit that was here is gone, or the link is wrong.',
  advice: 'Ask the person who gave you the link for the current one.',
}

const refusals = {
  gone: nothingHere,
  stopped: {
    status: 503,
    code: 'unit_stopped',
    title: 'This unit is stopped',
    text: 'Its owner has stopped it. A visit does not start it.',
    advice: 'Start it to make this address work again.',
  },
  exited: {
    status: 503,
    code: 'unit_exited',
    title: 'This unit has ended',
    text: 'Its program has ended by itself. A visit does not start it.',
    advice: 'Its logs and its last exit show why. Start it to make this address work again.',
  },
  cap: {
    status: 503,
    code: 'unit_over_limit',
    title: 'This unit has reached a limit',
    text: 'It has used all that its owner allows. It runs again when the limit is raised or a new day begins.',
    advice: 'Raise the limit, or stop another unit.',
  },
  credits: {
    status: 503,
    code: 'unit_out_of_credits',
    title: 'This unit cannot run now',
    text: 'Its team has no credits left.',
    advice: 'Add credits; the unit then wakes at the next visit.',
  },
  'no-room': {
    status: 503,
    code: 'no_room',
    title: 'There is no room for this unit now',
    text: 'It sleeps, and the host has no memory free to wake it at the moment.',
    advice: 'Try again soon.',
    retryAfterS: 30,
  },
  failed: {
    status: 502,
    code: 'wake_failed',
    title: 'This unit did not wake',
    text: 'It sleeps, and starting it has failed.',
    advice: 'Its error text says why. The next visit tries again.',
  },
} satisfies Record<VisitRefusal, ErrorMessage>

export function errorMessageOf(outcome: Outcome): ErrorMessage {
  switch (outcome.kind) {
    case 'unknown':
      return nothingHere
    case 'malformed':
      return {
        status: 400,
        code: 'malformed',
        title: 'This is not a well-formed request',
        text: 'It is malformed or ambiguous.',
        closes: true,
      }
    case 'head-too-large':
      return {
        status: 431,
        code: 'head_too_large',
        title: 'The head of this request is too large',
        text: 'Its headers, including cookies, are longer than the limit.',
        closes: true,
      }
    case 'plain':
      return {
        status: 400,
        code: 'not_tls',
        title: 'This port speaks TLS',
        text: 'The request came without TLS. Use https:// instead of http://.',
        closes: true,
      }
    case 'missing-sni':
      return {
        status: 421,
        code: 'nameless',
        title: 'This connection names no unit',
        text:
          'Its client sends no server name (SNI) in its TLS handshake. Let it send the host of the URL (redis-cli: ' +
          '--sni), or use the portWithoutSni of the endpoint.',
        closes: true,
      }
    case 'misdirected':
      return {
        status: 421,
        code: 'misdirected',
        title: 'This connection is for another address',
        text: 'Open a new connection for this one.',
        closes: true,
      }
    case 'routing-unavailable':
      return {
        status: 503,
        code: 'unavailable',
        title: 'This address cannot be looked up now',
        text: 'Routing is temporarily unavailable.',
        advice: 'Try again in a few seconds.',
        retryAfterS: 2,
      }
    case 'host-away':
      return {
        status: 503,
        code: 'host_away',
        title: 'The host of this unit is away',
        text: 'The machine that the unit is on does not answer now.',
        advice: 'Try again soon.',
        retryAfterS: 5,
      }
    case 'too-many':
      return {
        status: 503,
        code: 'too_many_visits',
        title: 'Too many visits at once',
        text: 'There are more visits at the moment than the service allows.',
        advice: 'Try again soon.',
        retryAfterS: 5,
        closes: true,
      }
    case 'waiting':
      return {
        status: 503,
        code: 'waking',
        title: 'This unit is waking up',
        text: 'That takes longer than usual. This page tries again by itself.',
        retryAfterS: outcome.retryAfterS,
      }
    case 'refused':
      return refusals[outcome.reason]
    case 'not-listening':
      return {
        status: 502,
        code: 'not_listening',
        title: 'Nothing answers in this unit',
        text: `The unit runs, but nothing listens on its port ${outcome.port}.`,
        advice: 'Look at its logs. Its program has to listen on 0.0.0.0, not on 127.0.0.1 alone.',
      }
    case 'bad-gateway':
      return {
        status: 502,
        code: 'bad_answer',
        title: 'The unit did not answer properly',
        text: 'It ended the connection, or what it said is not HTTP.',
        advice: 'Look at its logs.',
      }
    case 'too-slow':
      return {
        status: 504,
        code: 'no_answer',
        title: 'The unit did not answer in time',
        text: 'It took the request, and then said nothing for too long.',
        advice: 'Look at its logs.',
      }
    case 'visitor-too-slow':
      return {
        status: 408,
        code: 'too_slow',
        title: 'The request took too long',
        text: 'It did not arrive in time.',
        closes: true,
      }
  }
}
