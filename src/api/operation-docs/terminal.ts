// The texts of terminals in the OpenAPI document.

import type { OperationDoc } from './doc.ts'

export const terminalDocs: Record<string, OperationDoc> = {
  unitTerminal: {
    answer: 'The WebSocket is open, and the command runs.',
    cost: 'Wakes a sleeping unit, which then costs the price of its size until it sleeps again. Input and output count as use of the unit.',
    errors: {
      402: 'The unit sleeps and may not wake: the policy, the daily cap or the credits do not allow it. GET /v1/quota shows the numbers.',
      409: 'The state of the unit does not allow it. Start it by POST /v1/units/{id}/start, or wait until its state is `running`.',
      502: 'The unit could not be woken. GET /v1/units/{id} shows its state.',
    },
    query: { cmd: ['python3', '-i'], cols: '120', rows: '40' },
    response: null,
  },
}
