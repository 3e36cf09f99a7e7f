// The faults that the Patroni drill injects into the cluster.
import type { PatroniCluster } from './patroni-cluster.ts'
import type { PatroniNode } from './patroni-node.ts'

export interface Fault {
  name: string
  /** Injects the fault. Returns a function that ends it, to be called once creates succeed again. */
  begin(cluster: PatroniCluster): Promise<() => void>
}

export const FAULTS: readonly Fault[] = [
  {
    name: 'leader: PostgreSQL killed',
    async begin(cluster) {
      ;(await cluster.leader()).signalPostgres('SIGKILL')
      return () => {}
    },
  },
  {
    name: 'leader: PostgreSQL and Patroni killed',
    async begin(cluster) {
      const leader = await cluster.leader()
      await leader.killPatroni()
      leader.signalPostgres('SIGKILL')
      return () => leader.start()
    },
  },
  {
    name: 'leader: PostgreSQL hangs',
    async begin(cluster) {
      const leader = await cluster.leader()
      leader.signalPostgres('SIGSTOP')
      return () => leader.signalPostgres('SIGCONT')
    },
  },
  {
    name: 'synchronous standby: PostgreSQL and Patroni hang',
    begin: async (cluster) => hang(await cluster.synchronousStandby()),
  },
  {
    name: 'switchover by patronictl',
    async begin(cluster) {
      await cluster.switchOver()
      return () => {}
    },
  },
]

/** Freezes the leader with its Patroni, like a paused virtual machine; it resumes after another node was promoted. */
export const FROZEN_LEADER: Fault = {
  name: 'leader: PostgreSQL and Patroni hang',
  begin: async (cluster) => hang(await cluster.leader()),
}

/** Stops a node; returns a function that resumes it. Patroni stops first and resumes last, so that it cannot react in between. */
function hang(node: PatroniNode): () => void {
  node.signalPatroni('SIGSTOP')
  node.signalPostgres('SIGSTOP')
  return () => {
    node.signalPostgres('SIGCONT')
    node.signalPatroni('SIGCONT')
  }
}
