import { defineRecipe } from '../define.ts'
import { identifier, size, volumeGb } from '../params.ts'
import { ADDRESS_FOR_UNITS, PASSWORD_OF_USER } from './words.ts'

export const mariadb = defineRecipe({
  name: 'mariadb',
  title: 'MariaDB 10.11',
  description: 'A MariaDB database (MySQL protocol) with its own user and volume.',
  tags: ['database', 'sql', 'mysql'],
  params: {
    database: identifier('The database to create.', 'app', {
      taken: ['information_schema', 'mysql', 'performance_schema', 'sys'],
    }),
    user: identifier('The user with all rights on it.', 'app', { taken: ['public'] }),
    size: size('small'),
    volumeGb: volumeGb(2),
  },
  secrets: ['password'],
  units: {
    main: ({ params, secret }) => ({
      image: 'berth.local/mariadb:10.11',
      size: params.size,
      env: {
        MARIADB_DATABASE: params.database,
        MARIADB_USER: params.user,
        MARIADB_PASSWORD: { secret: 'MARIADB_PASSWORD', value: secret.password },
      },
      ports: [3306],
      databasePorts: [{ port: 3306, protocol: 'mysql' }],
      volume: { mount: '/var/lib/mysql', gb: params.volumeGb },
      healthcheck: { cmd: ['mariadb-admin', '--silent', 'ping'], timeoutMs: 120_000 },
    }),
  },
  frontDoor: null,
  outputs: {
    DATABASE_URL: {
      description: ADDRESS_FOR_UNITS,
      value: ({ params, secret, host }) =>
        `mysql://${params.user}:${secret.password}@${host.main}:3306/${params.database}`,
    },
    MARIADB_PASSWORD: { description: PASSWORD_OF_USER, value: ({ secret }) => secret.password },
  },
})
