// The regions of units (spec 2.10). On one host a region is only a label (design 7).

import { z } from 'zod'
import { strict } from './fields.ts'

export const regionIds = ['paris', 'virginia', 'singapore'] as const

export const regionSchema = strict({
  id: z.enum(regionIds),
  label: z.string(),
  country: z.string(),
  zone: z.string(),
  eu: z.boolean().describe('Whether it is in the European Union.'),
}).meta({ id: 'Region' })
type Region = z.infer<typeof regionSchema>

export const regions: Region[] = [
  { id: 'paris', label: 'Paris', country: 'France', zone: 'eu-west', eu: true },
  { id: 'virginia', label: 'Virginia', country: 'United States', zone: 'us-east', eu: false },
  { id: 'singapore', label: 'Singapore', country: 'Singapore', zone: 'ap-southeast', eu: false },
]
