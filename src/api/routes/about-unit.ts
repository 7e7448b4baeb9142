// What most routes about one unit share.

import { unitSchema } from '../../contract/unit.ts'
import { noBody } from '../http/body.ts'
import { idParams, noQuery } from '../route.ts'

export const aboutUnit = {
  noun: 'unit',
  params: idParams,
  query: noQuery,
  body: noBody,
  response: unitSchema,
  target: ({ params }: { params: { id: string } }) => params.id,
  record: () => null,
} as const
