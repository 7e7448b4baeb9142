// A message to the operator of the service (spec 4.5, design 5).

import { z } from 'zod'
import { strict, text } from './fields.ts'
import { limits } from './limits.ts'

export const supportMessageSchema = strict({
  topic: z.enum(['question', 'bug', 'idea']),
  message: text(limits.supportMessageLength).refine((message) => message.trim() !== '', {
    error: 'must not be empty',
  }),
}).meta({ id: 'SupportMessage' })
export type SupportMessage = z.infer<typeof supportMessageSchema>

export const supportTicketSchema = strict({
  ok: z.literal(true),
  ticket: z.string().describe('The reference of this message in the reply.'),
}).meta({ id: 'SupportTicket' })
export type SupportTicket = z.infer<typeof supportTicketSchema>
