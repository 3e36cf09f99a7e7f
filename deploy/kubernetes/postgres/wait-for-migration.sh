#!/bin/sh
# Waits until the Job has migrated. If it fails, prints its log and exits with 1; `kubectl wait` for its success would go on waiting.
while conditions=$(kubectl get job petstore-migrate -o 'jsonpath={.status.conditions[?(@.status=="True")].type}'); do
  case $conditions in
    *Complete*) exit 0 ;;
    *Failed*) break ;;
  esac
  sleep 2
done
kubectl logs job/petstore-migrate >&2
exit 1
