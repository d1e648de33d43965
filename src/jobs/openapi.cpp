#include "jobs/openapi.h"

namespace dais::jobs {
namespace {

constexpr std::string_view kText = R"json({
"openapi": "3.1.0",
"info": {"title": "dais jobs", "version": "1"},
"paths": {
  "/v1/jobs": {
    "post": {
      "summary": "Submit jobs, all or none; the same key again gives the same ids",
      "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Submission"}}}},
      "responses": {"200": {"description": "ids in order"}, "default": {"$ref": "#/components/responses/Error"}}},
    "get": {
      "summary": "Jobs that the caller may see, newest first",
      "parameters": [
        {"name": "all", "in": "query", "schema": {"type": "integer", "minimum": 0, "maximum": 1}},
        {"name": "before", "in": "query", "schema": {"type": "integer", "minimum": 0}},
        {"name": "most", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 10000}}],
      "responses": {"200": {"description": "jobs"}, "default": {"$ref": "#/components/responses/Error"}}}},
  "/v1/jobs/{id}": {
    "get": {
      "summary": "One job with its request, its history and what it waits for",
      "parameters": [{"$ref": "#/components/parameters/Id"}],
      "responses": {"200": {"description": "the job"}, "default": {"$ref": "#/components/responses/Error"}}}},
  "/v1/jobs/{id}/why": {
    "get": {
      "summary": "What a job waits for",
      "parameters": [{"$ref": "#/components/parameters/Id"}],
      "responses": {"200": {"description": "one line"}, "default": {"$ref": "#/components/responses/Error"}}}},
  "/v1/jobs/{id}/log": {
    "get": {
      "summary": "What a task printed",
      "parameters": [
        {"$ref": "#/components/parameters/Id"},
        {"name": "task", "in": "query", "schema": {"type": "integer", "minimum": 0}},
        {"name": "attempt", "in": "query", "schema": {"type": "integer", "minimum": 1}},
        {"name": "follow", "in": "query", "schema": {"type": "integer", "minimum": 0, "maximum": 1}}],
      "responses": {"200": {"description": "text"}, "default": {"$ref": "#/components/responses/Error"}}}},
  "/v1/jobs/{id}/artefacts": {
    "get": {
      "summary": "The files that were kept of it",
      "parameters": [{"$ref": "#/components/parameters/Id"}],
      "responses": {"200": {"description": "files"}, "default": {"$ref": "#/components/responses/Error"}}}},
  "/v1/jobs/{id}/artefact": {
    "get": {
      "summary": "One of them",
      "parameters": [
        {"$ref": "#/components/parameters/Id"},
        {"name": "path", "in": "query", "required": true, "schema": {"type": "string"}}],
      "responses": {"200": {"description": "its bytes"}, "default": {"$ref": "#/components/responses/Error"}}}},
  "/v1/jobs/{id}/cancel": {"post": {
      "summary": "End it for good",
      "parameters": [{"$ref": "#/components/parameters/Id"}],
      "responses": {"200": {"description": "the job"}, "default": {"$ref": "#/components/responses/Error"}}}},
  "/v1/jobs/{id}/pause": {"post": {
      "summary": "Stop it and hold it back",
      "parameters": [{"$ref": "#/components/parameters/Id"}],
      "responses": {"200": {"description": "the job"}, "default": {"$ref": "#/components/responses/Error"}}}},
  "/v1/jobs/{id}/resume": {"post": {
      "summary": "Let a held job go",
      "parameters": [{"$ref": "#/components/parameters/Id"}],
      "responses": {"200": {"description": "the job"}, "default": {"$ref": "#/components/responses/Error"}}}},
  "/v1/jobs/{id}/requeue": {"post": {
      "summary": "Stop it; it waits again",
      "parameters": [{"$ref": "#/components/parameters/Id"}],
      "responses": {"200": {"description": "the job"}, "default": {"$ref": "#/components/responses/Error"}}}},
  "/v1/projects": {
    "get": {
      "summary": "All projects",
      "responses": {"200": {"description": "projects"}, "default": {"$ref": "#/components/responses/Error"}}},
    "put": {
      "summary": "Set a project; administrators only",
      "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Project"}}}},
      "responses": {"200": {"description": "projects"}, "default": {"$ref": "#/components/responses/Error"}}}},
  "/v1/tokens": {
    "post": {
      "summary": "A token for a user; administrators only",
      "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/TokenRequest"}}}},
      "responses": {"200": {"description": "the token"}, "default": {"$ref": "#/components/responses/Error"}}}},
  "/v1/status": {
    "get": {
      "summary": "The machine: what there is, what is free, which walls hold",
      "responses": {"200": {"description": "status"}, "default": {"$ref": "#/components/responses/Error"}}}},
  "/v1/report": {
    "get": {
      "summary": "GPU hours by project and day: used, idle, unknown, and of attempts that failed",
      "parameters": [
        {"name": "project", "in": "query", "schema": {"type": "string"}},
        {"name": "from", "in": "query", "schema": {"type": "integer", "minimum": 0}},
        {"name": "to", "in": "query", "schema": {"type": "integer", "minimum": 0}}],
      "responses": {"200": {"description": "sums"}, "default": {"$ref": "#/components/responses/Error"}}}},
  "/v1/history": {
    "get": {
      "summary": "Values of a device over time: every 10 s of a day, or means of 10 minutes of 90 days",
      "parameters": [
        {"name": "device", "in": "query", "schema": {"type": "integer", "minimum": 0}},
        {"name": "name", "in": "query", "schema": {"type": "string"}},
        {"name": "coarse", "in": "query", "schema": {"type": "integer", "minimum": 0, "maximum": 1}},
        {"name": "from", "in": "query", "schema": {"type": "integer", "minimum": 0}},
        {"name": "to", "in": "query", "schema": {"type": "integer", "minimum": 0}}],
      "responses": {"200": {"description": "points"}, "default": {"$ref": "#/components/responses/Error"}}}},
  "/v1/openapi.json": {
    "get": {
      "summary": "This description",
      "responses": {"200": {"description": "OpenAPI"}, "default": {"$ref": "#/components/responses/Error"}}}},
  "/metrics": {
    "get": {
      "summary": "Prometheus text",
      "responses": {"200": {"description": "text"}, "default": {"$ref": "#/components/responses/Error"}}}}
},
"components": {
  "parameters": {
    "Id": {"name": "id", "in": "path", "required": true, "schema": {"type": "integer", "minimum": 1}}},
  "responses": {
    "Error": {"description": "what is wrong, where, and what to do", "content": {"application/json": {"schema": {
      "type": "object", "required": ["error"], "properties": {"error": {
        "type": "object", "required": ["code", "message", "where", "remedy"], "properties": {
          "code": {"type": "string"}, "message": {"type": "string"},
          "where": {"type": "string"}, "remedy": {"type": "string"}}}}}}}}},
  "schemas": {
    "Submission": {
      "type": "object", "required": ["jobs"],
      "properties": {
        "key": {"type": "string", "maxLength": 256},
        "jobs": {"type": "array", "minItems": 1, "items": {"$ref": "#/components/schemas/Job"}}}},
    "Job": {
      "type": "object",
      "required": ["name", "project", "user", "priority", "command", "folder", "snapshot", "environment",
        "tasks", "gpu_milli", "cpu_milli", "memory_mib", "preemptible", "grace_s", "min_run_s",
        "time_limit_s", "retries", "backoff_s", "after", "notify"],
      "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 128},
        "project": {"type": "string"},
        "user": {"type": "string"},
        "priority": {"type": "integer", "minimum": -1000, "maximum": 1000},
        "command": {"type": "array", "minItems": 1, "items": {"type": "string"}},
        "folder": {"type": "string"},
        "snapshot": {"type": "boolean"},
        "environment": {"type": "object", "additionalProperties": {"type": "string"}},
        "tasks": {"type": "integer", "minimum": 1, "maximum": 4096},
        "min_tasks": {"type": "integer", "minimum": 0, "maximum": 4096},
        "gpu_milli": {"type": "integer", "minimum": 0, "maximum": 64000},
        "gpu_mib": {"type": "integer", "minimum": 0, "maximum": 10000000},
        "gpu_parts": {"type": "array", "minItems": 2, "maxItems": 16, "items": {"type": "object",
          "properties": {"gpu_milli": {"type": "integer", "minimum": 0, "maximum": 1000},
            "gpu_mib": {"type": "integer", "minimum": 0, "maximum": 10000000}}}},
        "cpu_milli": {"type": "integer", "minimum": 0, "maximum": 10000000},
        "memory_mib": {"type": "integer", "minimum": 0, "maximum": 1000000000},
        "preemptible": {"type": "boolean"},
        "grace_s": {"type": "number", "minimum": 0, "maximum": 86400},
        "min_run_s": {"type": "number", "minimum": 0, "maximum": 100000000},
        "time_limit_s": {"type": "number", "minimum": 0, "maximum": 100000000},
        "retries": {"type": "integer", "minimum": 0, "maximum": 1000},
        "search": {"type": "object",
          "required": ["group", "first_step", "factor", "larger"],
          "properties": {"group": {"type": "string", "maxLength": 64},
            "first_step": {"type": "integer", "minimum": 0, "maximum": 1000000000000000},
            "factor": {"type": "number", "minimum": 1.5, "maximum": 1000},
            "larger": {"type": "boolean"}}},
        "backoff_s": {"type": "number", "minimum": 0, "maximum": 86400},
        "after": {"type": "array", "items": {"type": "integer"}},
        "artefacts": {"type": "array", "maxItems": 100, "items": {"type": "string", "maxLength": 1024}},
        "notify": {"type": "array", "items": {"type": "string"}}}},
    "Project": {
      "type": "object", "required": ["name"],
      "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 128},
        "parent": {"type": "string"},
        "quota": {"$ref": "#/components/schemas/Amounts"},
        "limit": {"$ref": "#/components/schemas/Amounts"},
        "weight": {"type": "number", "exclusiveMinimum": 0, "maximum": 1000000},
        "members": {"type": "array", "items": {"type": "string"}},
        "viewers": {"type": "array", "items": {"type": "string"}}}},
    "Amounts": {
      "type": "object",
      "properties": {
        "gpu_milli": {"type": "integer", "minimum": 0},
        "cpu_milli": {"type": "integer", "minimum": 0},
        "memory_mib": {"type": "integer", "minimum": 0}}},
    "TokenRequest": {
      "type": "object", "required": ["user"],
      "properties": {"user": {"type": "string"}, "admin": {"type": "boolean"}}}
  }
}
})json";

}  // namespace

std::string_view openapi_text() { return kText; }

}  // namespace dais::jobs
