// The service as one would write it in Go: net/http, database/sql and the drivers that most use.
package main

import (
	"database/sql"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log"
	"math"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"

	_ "github.com/jackc/pgx/v4/stdlib"
	_ "github.com/mattn/go-sqlite3"
)

type pet struct {
	ID         int64  `json:"id"`
	Name       string `json:"name"`
	CategoryID int64  `json:"categoryId"`
	Status     string `json:"status"`
}

type apiError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Status  int    `json:"status"`
}

// A page has a statement for each limit: with an unknown limit, PostgreSQL plans each page again.
type store struct {
	insert, one        *sql.Stmt
	page, pageOfStatus [101]*sql.Stmt
}

func open(address, driver string) store {
	var reads, writes *sql.DB
	if driver == "sqlite" {
		// database/sql gives a connection to one goroutine at a time, so SQLite's own mutex is not needed.
		file := "file:" + address + "?_synchronous=FULL&_busy_timeout=5000&_mutex=no"
		// Writes have one connection, since SQLite has one writer; reads have several.
		reads, writes = connect("sqlite3", file, 4), connect("sqlite3", file, 1)
	} else {
		reads = connect(driver, address+"?sslmode=disable", 10)
		writes = reads
	}
	s := store{
		insert: prepare(writes, `INSERT INTO pets (name, "categoryId", status) VALUES ($1, $2, $3) RETURNING id`),
		one:    prepare(reads, "SELECT * FROM pets WHERE id = $1"),
	}
	for limit := 1; limit <= 100; limit++ {
		s.page[limit] = prepare(reads, fmt.Sprintf("SELECT * FROM pets WHERE id < $1 ORDER BY id DESC LIMIT %d", limit))
		s.pageOfStatus[limit] = prepare(reads, fmt.Sprintf("SELECT * FROM pets WHERE status = $1 AND id < $2 ORDER BY id DESC LIMIT %d", limit))
	}
	return s
}

func connect(driver, address string, connections int) *sql.DB {
	db, err := sql.Open(driver, address)
	if err != nil {
		log.Fatal(err)
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db
}

func prepare(db *sql.DB, text string) *sql.Stmt {
	statement, err := db.Prepare(text)
	if err != nil {
		log.Fatal(err)
	}
	return statement
}

func (s store) list(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	limit, before := 20, int64(math.MaxInt64)
	if text := query.Get("limit"); text != "" {
		number, err := strconv.Atoi(text)
		if err != nil || number < 1 || number > 100 {
			fail(w, http.StatusBadRequest, "invalid_limit", "limit is not a number from 1 to 100")
			return
		}
		limit = number
	}
	if text := query.Get("cursor"); text != "" {
		bytes, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil || len(bytes) != 9 {
			fail(w, http.StatusBadRequest, "invalid_cursor", "cursor is not one of ours")
			return
		}
		before = int64(binary.BigEndian.Uint64(bytes[1:]))
	}
	pets, err := s.read(query.Get("status"), before, limit)
	if err != nil {
		fail(w, http.StatusInternalServerError, "internal", err.Error())
		return
	}
	send(w, http.StatusOK, pets)
}

func (s store) read(status string, before int64, limit int) ([]pet, error) {
	statement, parameters := s.page[limit], []interface{}{before}
	if status != "" {
		statement, parameters = s.pageOfStatus[limit], []interface{}{status, before}
	}
	rows, err := statement.Query(parameters...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	pets := make([]pet, 0, limit)
	for rows.Next() {
		var p pet
		if err := rows.Scan(&p.ID, &p.Name, &p.CategoryID, &p.Status); err != nil {
			return nil, err
		}
		pets = append(pets, p)
	}
	return pets, rows.Err()
}

func (s store) get(w http.ResponseWriter, r *http.Request) {
	var p pet
	id, err := strconv.ParseInt(strings.TrimPrefix(r.URL.Path, "/v1/pets/"), 10, 64)
	if err != nil {
		fail(w, http.StatusNotFound, "not_found", "No such animal")
		return
	}
	switch err := s.one.QueryRow(id).Scan(&p.ID, &p.Name, &p.CategoryID, &p.Status); err {
	case nil:
		send(w, http.StatusOK, p)
	case sql.ErrNoRows:
		fail(w, http.StatusNotFound, "not_found", "No such animal")
	default:
		fail(w, http.StatusInternalServerError, "internal", err.Error())
	}
}

func (s store) create(w http.ResponseWriter, r *http.Request) {
	p := pet{Status: "available"}
	if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
		fail(w, http.StatusBadRequest, "invalid_body", err.Error())
		return
	}
	if err := s.insert.QueryRow(p.Name, p.CategoryID, p.Status).Scan(&p.ID); err != nil {
		fail(w, http.StatusInternalServerError, "internal", err.Error())
		return
	}
	send(w, http.StatusCreated, p)
}

func send(w http.ResponseWriter, status int, value interface{}) {
	body, err := json.Marshal(value)
	if err != nil {
		log.Fatal(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body)
}

func fail(w http.ResponseWriter, status int, code, message string) {
	send(w, status, apiError{code, message, status})
}

func authenticated(key string, next http.Handler) http.Handler {
	expected := "Bearer " + key
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != expected {
			fail(w, http.StatusUnauthorized, "unauthorized", "API key missing or invalid")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func main() {
	pets := open(os.Args[1], os.Args[3])
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/pets/", pets.get)
	mux.HandleFunc("/v1/pets", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			pets.create(w, r)
		} else {
			pets.list(w, r)
		}
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("{\"port\":%d}\n", listener.Addr().(*net.TCPAddr).Port)
	log.Fatal(http.Serve(listener, authenticated(os.Args[2], mux)))
}
