import { defineRecipe } from '../define.ts'
import { identifier, size, volumeGb } from '../params.ts'
import { listensAt } from './listens-at.ts'

export const mongodb = defineRecipe({
  name: 'mongodb',
  title: 'MongoDB 7',
  description: 'A MongoDB with its own user and volume. Its image comes from Docker Hub: Debian has none.',
  tags: ['database', 'documents'],
  params: {
    user: identifier('The user with all rights.', 'app'),
    size: size('medium'),
    volumeGb: volumeGb(2),
  },
  secrets: ['password'],
  units: {
    main: ({ params, secret }) => ({
      image: 'docker.io/library/mongo:7',
      size: params.size,
      env: {
        MONGO_INITDB_ROOT_USERNAME: params.user,
        MONGO_INITDB_ROOT_PASSWORD: { secret: 'MONGODB_PASSWORD', value: secret.password },
      },
      ports: [27017],
      databasePorts: [{ port: 27017, protocol: 'mongodb' }],
      volume: { mount: '/data/db', gb: params.volumeGb },
      // The first start also runs a private server, which listens only on the loopback address.
      healthcheck: { cmd: listensAt(27017, '$(hostname)'), timeoutMs: 120_000 },
    }),
  },
  frontDoor: null,
  outputs: {
    MONGODB_URL: {
      description: 'The address for units of the team.',
      value: ({ params, secret, host }) =>
        `mongodb://${params.user}:${secret.password}@${host.main}:27017/?authSource=admin`,
    },
    MONGODB_PASSWORD: { description: 'The password of the user.', value: ({ secret }) => secret.password },
  },
})
