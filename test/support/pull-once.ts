// A process of its own that pulls one image, to be killed: `pull-once.ts IMAGES_DIR RUN_DIR MIRROR`.

import { openImages } from '../../src/engine/oci/images/images.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { plainImagesOptions } from './images.ts'

const [imagesDir = '', runDir = '', mirror = ''] = process.argv.slice(2)
const images = await openImages({
  imagesDir,
  runDir,
  ...plainImagesOptions,
  registryMirrors: { 'docker.io': mirror },
  clock: systemClock,
})
await images.pull('docker.io/library/app:1')
