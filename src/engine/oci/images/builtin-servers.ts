// What the built-in images of databases and web servers are made of (builtin.ts).

import { type BuiltIn, searchPath } from './builtin.ts'
import { erlangModules, gatherModules, preparePostgres, packed } from './builtin-steps.ts'

export const servers: BuiltIn[] = [
  {
    name: 'postgres',
    version: '15',
    packages: ['postgresql-15'],
    prepare: preparePostgres('/usr/lib/postgresql/15/bin'),
    keepsRun: true,
    volumeData: {
      mount: '/var/lib/postgresql/data',
      archive: '/usr/share/berth/prepared.tar',
      directory: '15.prepared',
    },
    remove: ['/var/lib/postgresql/15', '/etc/postgresql/15', '/etc/ssl/private/ssl-cert-snakeoil.key'],
    env: { PGDATA: '/var/lib/postgresql/data/15', PATH: searchPath('/usr/lib/postgresql/15/bin') },
    cmd: ['postgres'],
    ports: [5432],
    script: 'postgres.sh',
    // SIGTERM waits for every client to disconnect; SIGINT ends their sessions and shuts down cleanly.
    stopSignal: 'SIGINT',
  },
  {
    name: 'mariadb',
    version: '10.11',
    packages: ['mariadb-server'],
    prepare:
      'install -d -o mysql -g mysql /usr/share/berth /run/mysqld && ' +
      'mariadb-install-db --user=mysql --datadir=/usr/share/berth/data --skip-test-db --cross-bootstrap && ' +
      packed('data'),
    keepsRun: true,
    volumeData: { mount: '/var/lib/mysql', archive: '/usr/share/berth/data.tar', directory: 'data.prepared' },
    remove: ['/var/lib/mysql'],
    cmd: ['mariadbd'],
    ports: [3306],
    script: 'mariadb.sh',
  },
  {
    name: 'redis',
    version: '7',
    packages: ['redis-server'],
    cmd: ['redis-server'],
    ports: [6379],
    script: 'redis.sh',
  },
  {
    name: 'rabbitmq',
    version: '3',
    packages: ['rabbitmq-server'],
    prepare: gatherModules(),
    remove: ['/var/lib/rabbitmq/mnesia', '/var/lib/rabbitmq/.erlang.cookie'],
    env: {
      // The node's name is part of its data's path, and a fork has another host name.
      RABBITMQ_NODENAME: 'rabbit@localhost',
      RABBITMQ_LOGS: '-',
      ERL_AFLAGS: `-pa ${erlangModules}`,
    },
    cmd: ['rabbitmq-server'],
    ports: [5672],
    script: 'rabbitmq.sh',
  },
  {
    name: 'etcd',
    version: '3.4',
    packages: ['etcd-server', 'etcd-client'],
    env: { ETCDCTL_API: '3' },
    cmd: ['etcd'],
    ports: [2379],
    script: 'etcd.sh',
  },
  {
    name: 'nginx',
    version: '1.22',
    packages: ['nginx-light'],
    prepare: 'ln -sf /dev/stdout /var/log/nginx/access.log && ln -sf /dev/stderr /var/log/nginx/error.log',
    cmd: ['nginx'],
    ports: [80],
    script: 'nginx.sh',
    stopSignal: 'SIGQUIT',
  },
]
