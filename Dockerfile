# syntax=docker/dockerfile:1
# The server, in two stages: what builds it stays behind. Run it as `docker run … serve`.
#
# Another base, or a wheelhouse instead of an index, by build arguments:
#   --build-arg BASE=registry.example.org/python:3.11-slim
#   --build-arg PIP_ARGUMENTS="--no-index --find-links /wheels"
ARG BASE=docker.io/library/python:3.11.14-slim-bookworm

# hadolint ignore=DL3006
FROM ${BASE} AS build
ARG PIP_ARGUMENTS=""
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /src
# binutils takes the debugging symbols out of OpenDP's library: 107 MB of 275.
# hadolint ignore=DL3008
RUN python3 -m venv /opt/discreet \
    && { command -v strip || { apt-get update && apt-get install --yes --no-install-recommends binutils \
         && rm -rf /var/lib/apt/lists/*; }; }
# The dependencies first: they change less often than the service does.
COPY constraints.txt pyproject.toml README.md LICENSE ./
COPY service/discreet/__init__.py service/discreet/
# hadolint ignore=SC2086,DL3013
RUN /opt/discreet/bin/pip install --quiet ${PIP_ARGUMENTS} -c constraints.txt setuptools \
    && /opt/discreet/bin/pip install --quiet ${PIP_ARGUMENTS} -c constraints.txt --no-build-isolation '.[collaborative]'
COPY service service
# hadolint ignore=SC2086,DL3013
RUN /opt/discreet/bin/pip install --quiet ${PIP_ARGUMENTS} --no-deps --force-reinstall --no-build-isolation . \
    && /opt/discreet/bin/pip uninstall --quiet --yes setuptools pip \
    && rm -rf /opt/discreet/lib/python3*/site-packages/scipy/*/tests \
           /opt/discreet/lib/python3*/site-packages/implicit/gpu/_cuda*.so \
    && strip --strip-unneeded /opt/discreet/lib/python3*/site-packages/opendp/lib/*.so \
    && /opt/discreet/bin/python -m compileall -q /opt/discreet/lib \
    && /opt/discreet/bin/discreet --version

# hadolint ignore=DL3006
FROM ${BASE}
LABEL org.opencontainers.image.title="Discreet" \
      org.opencontainers.image.description="Recommendations that learn online and prove how little they give away" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/discreet /opt/discreet
# Numbers, so that Kubernetes can see that this is not root without asking the image.
RUN mkdir /data && chown 10001:10001 /data
USER 10001:10001
WORKDIR /tmp
ENV PATH=/opt/discreet/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    DISCREET_HOST=0.0.0.0 \
    DISCREET_DATA_DIR=/data
# The embedded store, for those who name no other. /tmp has to be writable as well.
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python3", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ.get('DISCREET_PORT', '8000') + '/health/live', timeout=4)"]
ENTRYPOINT ["discreet"]
CMD ["serve"]
