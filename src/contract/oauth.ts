// What agents' programs send to be connected (RFC 7591), and what a person agrees to.

import { z } from 'zod'
import { nameLine, strict } from './fields.ts'
import { policySchema } from './policy.ts'

/** All that is kept of how a program describes itself. What else it says is taken, and answered with what is so here. */
export const clientMetadataSchema = z.object({
  redirect_uris: z.array(z.string().max(2000)).min(1).max(50),
  client_name: z.string().max(2000).nullish(),
  client_uri: z.string().max(2000).nullish(),
  logo_uri: z.string().max(2000).nullish(),
})
export type ClientMetadata = z.infer<typeof clientMetadataSchema>

/** The same in a document at the URL that is the program's id. */
export const clientDocumentSchema = clientMetadataSchema.extend({
  client_id: z.string().max(2000),
  token_endpoint_auth_method: z.string().nullish(),
  token_endpoint_auth_methods_supported: z.array(z.string()).nullish(),
})

/** What a person has agreed to on the consent page. */
export const connectSchema = strict({
  ticket: z.string().max(200),
  team: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, 'is no id of a team'),
  /** The program's id, for the log. */
  client: z.string().max(2000),
  name: nameLine(1, 80),
  policy: policySchema,
})
export type Connect = z.infer<typeof connectSchema>

/** `redirectTo`: where the program waits for the answer. */
export const connectedSchema = strict({ agentId: z.string(), redirectTo: z.string() })
export type Connected = z.infer<typeof connectedSchema>
