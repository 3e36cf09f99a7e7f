// What an error means that Citus reports about one of its nodes.
import type { PostgresError } from 'postgres'

/** Citus reports some failures on nodes as XX000, "internal error": a bad row of several, and a lost node. Its files tell them. */
const FILES = new Set(['adaptive_executor.c', 'multi_copy.c', 'remote_commands.c', 'remote_transaction.c'])

/** Returns undefined for an error that is not of a node. */
export function meaningOnNode({ file, message }: PostgresError): 'bad row' | 'unavailable' | 'rolled back' | undefined {
  // The statement was planned for a shard that was replaced before it ran, in the moment in which the animals are distributed.
  if (message.startsWith('could not find valid entry for shard')) return 'rolled back'
  if (!FILES.has(file)) return undefined
  return message.includes(' violates ') ? 'bad row' : 'unavailable'
}
