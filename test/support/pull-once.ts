// A process of its own that pulls one image, to be killed: `pull-once.ts IMAGES_DIR RUN_DIR MIRROR`.

import { openImages } from '../../src/engine/oci/images/images.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { silentLog } from '../../src/lib/log.ts'

const [imagesDir = '', runDir = '', mirror = ''] = process.argv.slice(2)
const images = await openImages({
  imagesDir,
  runDir,
  reserveGb: 1,
  registryMirrors: { 'docker.io': mirror },
  registryAuthFile: null,
  upstreamProxy: null,
  onProgress: () => {},
  instance: null,
  upkeep: null,
  log: silentLog,
  clock: systemClock,
})
await images.pull('docker.io/library/app:1')
