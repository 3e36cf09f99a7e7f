// U+0000 and halves of characters, which PostgreSQL cannot store: no request with them fails, or hides what others did.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { ConsoleClient, signedIn } from '../harness/connections/console-client.ts'
import { describeService, expectError, PASSWORD } from '../harness/harness.ts'

describeService('Text that no database can store', (service) => {
  it('is escaped in the failed requests of an account, and hides none of them', async () => {
    const broken = ['\0', '{"\0', `{"a":${'x'.repeat(30)}🐈\0`, '{"name":"\0"}', '"\\ud800']
    const bodies = [...broken, '{"name":"\\ud800\\u0000","categoryId":"\\udc00"}']
    for (const body of bodies) assert.equal((await service().add(body)).status, 400, body)
    await service().call('/pets?status=%00')
    await service().call('/pets/%00%ed%a0%80')
    const client = await signedIn(service())
    const { status, body } = await client.get('/activity')
    assert.equal(status, 200)
    assert.equal(body.split('Request-Id <code>').length - 1, bodies.length + 2)
    assert.doesNotMatch(body, /\0/)
    for (const { message } of await service().store.accounts.failedRequests(service().account.id, 100)) {
      assert.ok(message.isWellFormed())
      assert.doesNotMatch(message, /\p{Cc}/u)
    }
  })

  it('finds nothing where something is looked up by it', async () => {
    const client = await signedIn(service())
    for (const id of ['%00', 'key_%00', '%ef%bf%bd'])
      assert.equal((await client.get(`/keys/${id}/revoke`)).status, 404, id)
    const { email } = service().account
    const stranger = new ConsoleClient(service().url)
    const answers = [
      await stranger.signIn(`\0${email}`, PASSWORD),
      await stranger.signIn(email, `${PASSWORD}\0`),
      await stranger.submit('/sign-up', '/sign-up', { name: 'Ben', email: 'a\0b@example.com', password: PASSWORD }),
    ]
    for (const { status } of answers) assert.equal(status, 400)
    await expectError(await service().call('/pets/%00'), 'pet_not_found')
    await expectError(await service().call('/pets?cursor=%00'), 'invalid_parameter')
  })
})
