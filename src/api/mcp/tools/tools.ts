// All tools in the order of the list. A change of order would invalidate the prompt cache of every session.

import type { Tool } from '../tool.ts'
import { accountTools } from './account.ts'
import { codeTools } from './code.ts'
import { commandTools } from './commands.ts'
import { fileTools } from './files.ts'
import { processTools } from './processes.ts'
import { reachTools, stackTools } from './reach.ts'
import { recipeTools } from './recipes.ts'
import { unitTools } from './units.ts'

export const tools: readonly Tool[] = [
  ...unitTools,
  ...recipeTools,
  ...codeTools,
  ...commandTools,
  ...processTools,
  ...fileTools,
  ...reachTools,
  ...stackTools,
  ...accountTools,
]
