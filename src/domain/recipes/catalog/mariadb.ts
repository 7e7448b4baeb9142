import { defineRecipe } from '../define.ts'
import { identifier, size, volumeGb } from '../params.ts'

export const mariadb = defineRecipe({
  name: 'mariadb',
  title: 'MariaDB 10.11',
  description: 'A MariaDB database, which speaks the protocol of MySQL, with a user and a volume of its own.',
  tags: ['database', 'sql', 'mysql'],
  params: {
    database: identifier('The database to make.', 'app', {
      taken: ['information_schema', 'mysql', 'performance_schema', 'sys'],
    }),
    user: identifier('Who has all rights on it.', 'app', { taken: ['public'] }),
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
      healthcheck: { cmd: ['mariadb-admin', '--silent', 'ping'] },
    }),
  },
  frontDoor: null,
  outputs: {
    DATABASE_URL: {
      description: 'Where units of the team reach it.',
      value: ({ params, secret, host }) =>
        `mysql://${params.user}:${secret.password}@${host.main}:3306/${params.database}`,
    },
    MARIADB_PASSWORD: { description: 'The password of the user.', value: ({ secret }) => secret.password },
  },
})
