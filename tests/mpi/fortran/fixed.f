C     Fixed source form, upper case, as in 1995.
      PROGRAM FIXED
      INCLUDE 'mpif.h'
      INTEGER IERR, STATUS(MPI_STATUS_SIZE), N
      CALL MPI_INIT(IERR)
      CALL MPI_SENDRECV(7, 1, MPI_INTEGER, 0, 1, N, 1, MPI_INTEGER, 0,
     +                  1, MPI_COMM_SELF, STATUS, IERR)
      IF (N .NE. 7 .OR. STATUS(MPI_TAG) .NE. 1) STOP 1
      CALL MPI_FINALIZE(IERR)
      END
