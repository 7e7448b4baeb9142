// Files of a unit as streams, and what is done with them in place.

import { type OperationDoc, sseExample } from './doc.ts'
import { startedAt } from './values.ts'

const wakes = 'Wakes a sleeping unit, which then costs the price of its size until it sleeps again.'
const unitBusy =
  'The unit is stopped, failed or still being created, or it ended under the call: start it by POST /v1/units/{id}/start, or wait until it runs.'
const failedInside = 'The infrastructure failed: send the call again.'
const nothingThere = 'There is no such unit, or nothing at that path in it.'

/** Of an entry of a directory. */
export const ofRoot = { uid: 0, gid: 0, owner: 'root', group: 'root' }

export const fileDocs: Record<string, OperationDoc> = {
  unitFileSend: {
    answer: 'The file as it is, streamed.',
    cost: wakes,
    errors: { 404: nothingThere, 409: unitBusy, 502: failedInside },
    response: 'the bytes of the file',
  },
  unitFileReceive: {
    request: 'the bytes of the file',
    answer: 'What the unit has on its disk now. `verified` says that the unit read the same bytes back.',
    cost: wakes,
    errors: {
      409: 'The disk is full, the unit ended under the call, or its state does not allow it. The file is as it was before.',
      502: 'The infrastructure failed. The file is as it was before: send the call again.',
    },
    response: {
      path: '/data/model.bin',
      bytes: 1_073_741_824,
      sha256: '49bc20df15e412a64472421e13fe86ff1c5165e18b2afccf160d4dc19fe68a14',
      verified: true,
    },
  },
  unitFileFacts: {
    answer: 'What is at the path.',
    cost: wakes,
    errors: { 404: nothingThere, 409: unitBusy, 502: failedInside },
    response: {
      path: '/app/latest',
      type: 'link',
      mode: '0777',
      bytes: 9,
      modifiedAt: startedAt,
      ...ofRoot,
      target: 'release-7',
    },
  },
  unitFileWatch: {
    answer: 'Events, until the client disconnects, the directory is removed, or the run of the unit ends.',
    cost: `${wakes} An open watch does not keep it awake.`,
    errors: { 404: nothingThere, 409: unitBusy, 502: failedInside },
    response: 'a stream of events',
    events: sseExample([
      { event: 'ready', data: {} },
      { event: 'create', data: { path: 'src/main.js', isDirectory: false } },
      { event: 'write', data: { path: 'src/main.js', isDirectory: false } },
    ]),
  },
  unitFileMove: {
    answer: 'The new path.',
    cost: wakes,
    errors: { 404: nothingThere, 409: unitBusy, 502: failedInside },
    request: { path: '/app/draft.md', to: '/app/done/report.md' },
    response: { path: '/app/done/report.md' },
  },
  unitDirectoryMake: {
    answer: 'The directory is there now; `made` is false if it was before.',
    cost: wakes,
    errors: { 409: unitBusy, 502: failedInside },
    request: { path: '/app/cache', mode: '0700' },
    response: { path: '/app/cache', made: true },
  },
}
