// The service as one would write it with Express.
import express from 'express'
import { create, get, KEY, list, listening } from './animals.js'

const app = express()
app.use((request, response, next) => {
  if (request.get('authorization') === `Bearer ${KEY}`) next()
  else response.status(401).json({ code: 'unauthorized', message: 'API key missing or invalid', status: 401 })
})
app.use(express.json())
app.get('/v1/pets', (request, response) => response.json(list(request.query)))
app.get('/v1/pets/:id', (request, response) => {
  const pet = get(request.params.id)
  if (pet === undefined) response.status(404).json({ code: 'not_found', message: 'No such animal', status: 404 })
  else response.json(pet)
})
app.post('/v1/pets', (request, response) => response.status(201).json(create(request.body)))
const server = app.listen(0, '127.0.0.1', () => listening(server))
