// How the certificates of a host are renewed over its engine (decisions/joining.md). Their contents are for the host and
// the supervisor of the server's machine alone: what is between them only carries it.

/** What a host says of its certificates. */
export type Renewal = {
  /** When the first of them ends. */
  endsAt: Date
  /** It asks for new ones. */
  request: string | null
}

/** In PEM, each with that of the authority; or a sentence. */
export type RenewalOutcome = { engine: string; gateway: string } | { refused: string }

export const MAX_RENEWAL_REQUEST_BYTES = 8192
export const MAX_CERTIFICATE_BYTES = 8192
export const MAX_REFUSAL_LENGTH = 1000
