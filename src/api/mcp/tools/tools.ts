// All tools, in the order in which they are listed: one that changed would cost every session its prompt cache.

import type { Tool } from '../tool.ts'
import { accountTools } from './account.ts'
import { commandTools } from './commands.ts'
import { fileTools } from './files.ts'
import { reachTools, stackTools } from './reach.ts'
import { recipeTools } from './recipes.ts'
import { unitTools } from './units.ts'

export const tools: readonly Tool[] = [
  ...unitTools,
  ...recipeTools,
  ...commandTools,
  ...fileTools,
  ...reachTools,
  ...stackTools,
  ...accountTools,
]
