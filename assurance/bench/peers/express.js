// The service as one would write it with Express.
import express from 'express'
import { create, get, KEY, list, listening, NOT_FOUND, UNAUTHORIZED } from './animals.js'

const app = express()
app.use((request, response, next) => {
  if (request.get('authorization') === `Bearer ${KEY}`) next()
  else response.status(401).json(UNAUTHORIZED)
})
app.use(express.json())
app.get('/v1/pets', (request, response) => response.json(list(request.query)))
app.get('/v1/pets/:id', (request, response) => {
  const pet = get(request.params.id)
  if (pet) response.json(pet)
  else response.status(404).json(NOT_FOUND)
})
app.post('/v1/pets', (request, response) => response.status(201).json(create(request.body)))
const server = app.listen(0, '127.0.0.1', () => listening(server.address().port))
