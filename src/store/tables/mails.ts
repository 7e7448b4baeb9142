// The columns of `mails` (store/mails.ts).

export type MailsTable = {
  id: string
  sealed: Buffer
  /** How many deliveries were attempted. */
  attempts: number
  due_at: Date
  created_at: Date
}
