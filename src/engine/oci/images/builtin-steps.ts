// Steps of built-in images that are longer than a line (builtin-images.ts).

/** Below the directory of a user's plugins, which RabbitMQ itself puts before all others once it knows its plugins. */
export const erlangModules = '/usr/lib/rabbitmq/plugins/modules/ebin'

/**
 * Erlang looks for each module in one directory after the other: of RabbitMQ's start, 53,000 of 56,000 opened files were not
 * there. In this one a link leads to each (decisions/builtin-images.md): but for `rabbit_env`, which finds the plugins by
 * where it lies itself.
 */
export function gatherModules(): string {
  const modules = 'find /usr/lib/erlang/lib /usr/lib/rabbitmq/lib -name "*.beam" ! -name rabbit_env.beam'
  return `mkdir -p ${erlangModules} && ${modules} -exec ln -s -t ${erlangModules} {} +`
}

/**
 * A cluster with one locale for all, since it keeps the one that it was created with. For volumes it has a database to spare,
 * so that no unit has to copy one: the script gives it its name and its owner. By content in postgresql.auto.conf the script
 * knows a cluster that something was done with.
 */
export function preparePostgres(programs: string): string {
  const at = '/usr/share/berth'
  const asPostgres = 'setpriv --reuid=postgres --regid=postgres --init-groups'
  return [
    `install -d -o postgres -g postgres ${at} /run/postgresql`,
    `${asPostgres} ${programs}/initdb --pgdata=${at}/cluster --username=postgres --encoding=UTF8 ` +
      '--locale=C.UTF-8 --auth-local=trust --auth-host=scram-sha-256 --no-sync',
    `echo "host all all all scram-sha-256" >>${at}/cluster/pg_hba.conf`,
    `: >${at}/cluster/postgresql.auto.conf`,
    `cp --archive ${at}/cluster ${at}/prepared`,
    'echo "CREATE DATABASE spare STRATEGY file_copy" | ' +
      `${asPostgres} ${programs}/postgres --single -D ${at}/prepared -c fsync=off -c exit_on_error=on postgres`,
    packed('cluster'),
    packed('prepared'),
  ].join(' && ')
}

/** A directory of /usr/share/berth as one file without runs of zeros, which is fast to unpack in a sandbox too. */
export function packed(directory: string): string {
  const at = `/usr/share/berth/${directory}`
  return (
    `cp --archive --sparse=always ${at} ${at}.thin && ` +
    `tar --create --sparse --file=${at}.tar --directory=${at}.thin . && rm -r ${at} ${at}.thin`
  )
}
