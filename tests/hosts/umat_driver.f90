! Calls umat as a host does: reads a path, steps along it, writes what came of each step.
! Numbers are read and written by their bits.
program umat_driver
  implicit none
  integer, parameter :: wp = kind(1.0d0)
  integer :: ndi, nshr, ntens, nstatv, nprops, nfields, steps, step
  real(wp) :: dtime(1), time(2), sse, spd, scd, rpl, drpldt, temp, dtemp, celent, pnewdt
  real(wp) :: drot(3, 3), dfgrd0(3, 3), dfgrd1(3, 3), coords(3)
  real(wp), allocatable :: stress(:), statev(:), ddsdde(:, :), ddsddt(:), drplde(:)
  real(wp), allocatable :: stran(:), dstran(:), predef(:), dpred(:), props(:)
  character(len=80) :: cmname
  interface
    subroutine umat(stress, statev, ddsdde, sse, spd, scd, rpl, ddsddt, drplde, drpldt, stran, dstran, &
        time, dtime, temp, dtemp, predef, dpred, cmname, ndi, nshr, ntens, nstatv, props, nprops, &
        coords, drot, pnewdt, celent, dfgrd0, dfgrd1, noel, npt, layer, kspt, kstep, kinc)
      integer, parameter :: wp = kind(1.0d0)
      integer :: ndi, nshr, ntens, nstatv, nprops, noel, npt, layer, kspt, kstep, kinc
      real(wp) :: stress(*), statev(*), ddsdde(ntens, ntens), sse, spd, scd, rpl, ddsddt(*), drplde(*)
      real(wp) :: drpldt, stran(*), dstran(*), time(2), dtime(1), temp, dtemp, predef(*), dpred(*)
      real(wp) :: props(*), coords(3), drot(3, 3), pnewdt, celent, dfgrd0(3, 3), dfgrd1(3, 3)
      character(len=80) :: cmname
    end subroutine
  end interface

  read *, ndi, nshr, nstatv, nprops, nfields, steps
  ntens = ndi + nshr
  allocate (stress(ntens), statev(max(nstatv, 1)), ddsdde(ntens, ntens), ddsddt(ntens), drplde(ntens))
  allocate (stran(ntens), dstran(ntens), predef(nfields + 1), dpred(nfields + 1), props(nprops + 1))
  cmname = 'MATERIAL'
  stress = 0; ddsdde = 0; ddsddt = 0; stran = 0; time = 0; coords = 0; celent = 1
  sse = 0; spd = 0; scd = 0; predef = 0; dpred = 0
  call take(dtime, 1)
  call take(statev, nstatv)
  call take(props, nprops)
  dfgrd0 = 0
  dfgrd0(1, 1) = 1; dfgrd0(2, 2) = 1; dfgrd0(3, 3) = 1
  call take_one(temp)
  do step = 1, steps
    call take(dstran, ntens)
    call take(dfgrd1, 9)
    call take(drot, 9)
    call take_one(dtemp)
    call take(dpred, nfields)
    pnewdt = 1
    call umat(stress, statev, ddsdde, sse, spd, scd, rpl, ddsddt, drplde, drpldt, stran, dstran, time, &
      dtime, temp, dtemp, predef, dpred, cmname, ndi, nshr, ntens, nstatv, props, nprops, coords, drot, &
      pnewdt, celent, dfgrd0, dfgrd1, 1, 1, 1, 1, 1, step)
    call tell(stress, ntens)
    call tell(ddsdde, ntens * ntens)
    call tell(ddsddt, ntens)
    call tell(statev, nstatv)
    call tell([sse, spd, scd, pnewdt], 4)
    if (pnewdt < 1) cycle
    stran = stran + dstran
    time = time + dtime(1)
    temp = temp + dtemp
    predef = predef + dpred
    dfgrd0 = dfgrd1
  end do
contains
  subroutine take(x, n)
    integer, intent(in) :: n
    real(wp), intent(out) :: x(*)
    integer(8) :: bits
    integer :: i
    do i = 1, n
      read '(z16)', bits
      x(i) = transfer(bits, 1.0_wp)
    end do
  end subroutine
  subroutine take_one(x)
    real(wp), intent(out) :: x
    real(wp) :: one(1)
    call take(one, 1)
    x = one(1)
  end subroutine
  subroutine tell(x, n)
    integer, intent(in) :: n
    real(wp), intent(in) :: x(*)
    integer :: i
    do i = 1, n
      print '(z16.16)', transfer(x(i), 1_8)
    end do
  end subroutine
end program
