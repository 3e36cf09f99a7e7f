// Connections to a service of this process that its worker has accepted: the system decides which process does.
import { once } from 'node:events'
import { acceptedFrom, socketsOf } from '../harness/accepted-sockets.ts'
import { RawConnection } from '../harness/raw-http.ts'

export async function connectToWorker(url: string): Promise<RawConnection> {
  for (;;) {
    const connection = new RawConnection(url)
    await once(connection.socket, 'connect')
    const { localPort } = connection.socket
    const inodes = await acceptedFrom([localPort!], Number(new URL(url).port))
    if (!socketsOf(process.pid).has(inodes.get(localPort!)!)) return connection
    connection.socket.destroy()
  }
}
