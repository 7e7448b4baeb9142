import { defineRecipe } from '../define.ts'
import { size, volumeGb } from '../params.ts'
import { ADDRESS_FOR_UNITS } from './words.ts'

export const etcd = defineRecipe({
  name: 'etcd',
  title: 'etcd 3.4',
  description: 'A key-value store with watches: a cluster of one, open to the whole team.',
  tags: ['database', 'key-value'],
  params: { size: size('small'), volumeGb: volumeGb(2) },
  secrets: [],
  units: {
    main: ({ params }) => ({
      image: 'berth.local/etcd:3.4',
      size: params.size,
      ports: [2379],
      databasePorts: [{ port: 2379, protocol: 'grpc' }],
      volume: { mount: '/var/lib/etcd', gb: params.volumeGb },
      healthcheck: { cmd: ['etcdctl', 'endpoint', 'health'], timeoutMs: 120_000 },
    }),
  },
  frontDoor: null,
  outputs: {
    ETCD_URL: {
      description: ADDRESS_FOR_UNITS,
      value: ({ host }) => `http://${host.main}:2379`,
    },
  },
})
