// Section 3 of the specification: the status of an animal, and that nothing moves it.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { PET_STATUSES } from '../../src/contract/pets.ts'
import { allowedAt, describeOnSqlite, expectError } from '../harness/harness.ts'

describeOnSqlite('3. States', (service) => {
  for (const status of PET_STATUSES) {
    it(`lets an animal start as ${status}, and stay so`, async () => {
      const made = await (await service().add({ name: 'Rex', categoryId: 1, status })).text()
      const { id } = JSON.parse(made) as { id: number }
      assert.equal(await (await service().call(`/pets/${id}`)).text(), made)
    })
  }

  for (const method of ['PUT', 'PATCH']) {
    it(`has no transitions: ${method} is not possible on an animal`, async () => {
      const { id } = (await (await service().add({ name: 'Rex', categoryId: 1 })).json()) as { id: number }
      const response = await service().call(`/pets/${id}`, { method, body: '{"status":"sold"}' })
      assert.equal(response.headers.get('allow'), allowedAt('/pets/{petId}'))
      await expectError(response, 'method_not_allowed')
      assert.match(await (await service().call(`/pets/${id}`)).text(), /"status":"available"/)
    })
  }
})
