// What an agent's program sends to connect (RFC 7591), and what a person agrees to.

import { z } from 'zod'
import { nameLine, strict } from './fields.ts'
import { policySchema } from './policy.ts'

/**
 * The stored part of a program's description. Other fields are accepted, and the answer shows the values in effect.
 */
export const clientMetadataSchema = z.object({
  redirect_uris: z.array(z.string().max(2000)).min(1).max(50),
  client_name: z.string().max(2000).nullish(),
  client_uri: z.string().max(2000).nullish(),
  logo_uri: z.string().max(2000).nullish(),
})
export type ClientMetadata = z.infer<typeof clientMetadataSchema>

/** The same description in a document at the URL that is the program's id. */
export const clientDocumentSchema = clientMetadataSchema.extend({
  client_id: z.string().max(2000),
  token_endpoint_auth_method: z.string().nullish(),
  token_endpoint_auth_methods_supported: z.array(z.string()).nullish(),
})

/** What a person agreed to on the consent page. */
export const connectSchema = strict({
  ticket: z.string().max(200),
  team: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, 'is not the id of a team'),
  /** The program's id, for the log. */
  client: z.string().max(2000),
  name: nameLine(1, 80),
  policy: policySchema,
})
export type Connect = z.infer<typeof connectSchema>

/** `redirectTo`: the address at which the program waits for the answer. */
export const connectedSchema = strict({ agentId: z.string(), redirectTo: z.string() })
export type Connected = z.infer<typeof connectedSchema>
