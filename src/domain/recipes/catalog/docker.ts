import { defineRecipe } from '../define.ts'
import { size, volumeGb } from '../params.ts'

export const docker = defineRecipe({
  name: 'docker',
  title: 'Docker 20.10',
  description:
    'A Docker with compose and buildah, for containers inside the unit. Its images and containers are on its own volume. Needs ' +
    'a policy with `allowNested`, and the isolation class gvisor on a current runsc.',
  tags: ['containers', 'shell'],
  params: { size: size('medium'), volumeGb: volumeGb(5) },
  secrets: [],
  units: {
    main: ({ params }) => ({
      image: 'berth.local/docker:20.10',
      size: params.size,
      nested: true,
      volume: { mount: '/var/lib/docker', gb: params.volumeGb },
      healthcheck: { cmd: ['docker', 'version'], timeoutMs: 120_000 },
    }),
  },
  frontDoor: null,
  outputs: {},
})
