// The texts and examples of each operation in the OpenAPI document, by `operationId`.

import { accountDocs } from './accounts.ts'
import { codeDocs } from './code.ts'
import type { OperationDoc } from './doc.ts'
import { egressDocs } from './egress.ts'
import { fileDocs } from './files.ts'
import { hostedAgentDocs } from './hosted-agents.ts'
import { metricsDocs } from './metrics.ts'
import { processDocs } from './processes.ts'
import { secretDocs } from './secrets.ts'
import { terminalDocs } from './terminal.ts'
import { stackDocs } from './stacks.ts'
import { unitDocs } from './units.ts'

export const operationDocs: Record<string, OperationDoc> = {
  ...unitDocs,
  ...stackDocs,
  ...metricsDocs,
  ...egressDocs,
  ...fileDocs,
  ...processDocs,
  ...codeDocs,
  ...terminalDocs,
  ...accountDocs,
  ...secretDocs,
  ...hostedAgentDocs,
}
